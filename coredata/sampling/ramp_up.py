"""A global batch size that grows with the samples consumed."""

from dataclasses import dataclass

from coredata.sampling.checks import check_global_batch, check_positive, take_whole_numbers


@dataclass(frozen=True)
class BatchSizeRampUp:
    """Megatron-LM's batch size ramp-up.

    The batch size starts at `start_batch_size` and grows by `increment` up to `global_batch_size`,
    in even distances over the first `ramp_up_samples` samples. It is a function of the samples
    consumed alone: any number of them may be resumed from, whether or not a step ended there.

    The size is computed in 64-bit floats as Megatron-LM does, so that runs agree step by step.
    A `ramp_up_samples` of 0 and a start at full size mean a constant size (errors there).

    Raises:
        ValueError: a size that is not positive, a start above the end, or a distance between
            them that is not a multiple of the increment.
    """

    start_batch_size: int
    increment: int
    ramp_up_samples: int
    global_batch_size: int

    def __post_init__(self) -> None:
        names = ("start_batch_size", "increment", "ramp_up_samples", "global_batch_size")
        take_whole_numbers(self, *names)
        check_positive(
            start_batch_size=self.start_batch_size,
            increment=self.increment,
            global_batch_size=self.global_batch_size,
        )
        if self.ramp_up_samples < 0:
            raise ValueError(f"ramp_up_samples: {self.ramp_up_samples} is negative")
        growth = self.global_batch_size - self.start_batch_size
        if growth < 0:
            raise ValueError(
                f"start_batch_size: {self.start_batch_size} is above global_batch_size "
                f"{self.global_batch_size}"
            )
        if growth % self.increment:
            fits = self.start_batch_size + growth // self.increment * self.increment
            raise ValueError(
                f"increment: from {self.start_batch_size} to {self.global_batch_size} are "
                f"{growth}, not a multiple of {self.increment}. "
                f"A global_batch_size of {fits} would work"
            )

    @property
    def increments(self) -> int:
        """How often the batch size grows."""
        return (self.global_batch_size - self.start_batch_size) // self.increment

    def batch_size(self, consumed_samples: int) -> int:
        """The global batch size of the step that starts here."""
        return self.start_batch_size + self._grown(consumed_samples) * self.increment

    def consumed_after(self, steps: int, start: int = 0) -> int:
        """Samples consumed after this many steps, from `start` consumed samples on."""
        if steps < 0:
            raise ValueError(f"steps: {steps} is negative")
        consumed = start
        while steps:
            taken, size = self._steps_of_this_size(consumed)
            taken = steps if taken is None else min(taken, steps)
            consumed += taken * size
            steps -= taken
        return consumed

    def steps_until(self, consumed_samples: int, start: int = 0) -> int:
        """Whole steps from `start` consumed samples on until no more than these are consumed."""
        if consumed_samples < start:
            raise ValueError(f"consumed_samples: {consumed_samples} is before start {start}")
        steps, consumed = 0, start
        while True:
            taken, size = self._steps_of_this_size(consumed)
            fit = (consumed_samples - consumed) // size
            if taken is None or fit < taken:
                return steps + fit
            steps += taken
            consumed += taken * size

    def check_divisible(self, micro_batch_size: int, data_parallel_size: int) -> None:
        """Every batch size on the way must be made of whole micro batches on every rank.

        Raises:
            ValueError: naming the first size that is not, and one near it that is.
        """
        sizes = [self.start_batch_size]
        if self.increments:
            sizes.append(self.start_batch_size + self.increment)
        # If the first two sizes are multiples, so are their distance and all the rest.
        for size in sizes:
            check_global_batch(size, micro_batch_size, data_parallel_size)

    def _grown(self, consumed: int) -> int:
        """How often the batch size has grown."""
        if consumed < 0:
            raise ValueError(f"consumed_samples: {consumed} is negative")
        if consumed > self.ramp_up_samples or not self.increments or not self.ramp_up_samples:
            return self.increments
        return min(int(consumed / (self.ramp_up_samples / self.increments)), self.increments)

    def _steps_of_this_size(self, consumed: int) -> tuple[int | None, int]:
        """How many steps from here have the same size (None: all), and that size."""
        grown = self._grown(consumed)
        size = self.start_batch_size + grown * self.increment
        if grown == self.increments:
            return None, size
        next_growth = -(-(grown + 1) * self.ramp_up_samples // self.increments)
        # Floats may be off by one sample from the exact place; the rule above decides.
        while self._grown(next_growth) <= grown:
            next_growth += 1
        while self._grown(next_growth - 1) > grown:
            next_growth -= 1
        return -(-(next_growth - consumed) // size), size
