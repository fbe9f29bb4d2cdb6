"""The loaders of a training run, as Megatron-LM's functions of these names make them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from coredata.datasets.ranks import Ranks
from coredata.loading import read_state
from coredata.sampling.checks import whole_number
from coredata_torch.agreement import FailureHeard, check_agreement
from coredata_torch.config import LoaderConfig
from coredata_torch.loader import PretrainingDataLoader

Provider = Callable[[Sequence[int | None]], Sequence[Any]]
"""Sizes of train, valid and test -> the three datasets, as the builder gives them."""


def build_pretraining_data_loader(
    dataset: Any,
    consumed_samples: SupportsIndex,
    *,
    config: LoaderConfig,
    validation: bool = False,
    repeat: bool = False,
    ranks: Ranks | None = None,
) -> Any:
    """The loader of one dataset.

    Args:
        dataset: one of coredata's; None where there is none; with the external type, a loader.
        consumed_samples: samples that all ranks together have consumed.
        config: sizes, ranks, kind of loader.
        validation: whether `config.full_validation` holds.
        repeat: start again after the end.
        ranks: processes that all build this loader here and shall agree on the dataset, or on
            there being none; None compares nothing.

    Returns:
        A `PretrainingDataLoader`; None without a dataset; with the external type, the dataset.

    Raises:
        ValueError: a position or sizes that do not fit; the text says what would.
        TypeError: a position that is no integer.
        PlanMismatchError: processes have different datasets.
        RankFailedError: another process could not make its loader.
    """
    if config.dataloader_type == "external":
        return dataset
    with FailureHeard(ranks):
        loader = _loader(dataset, consumed_samples, config, validation, repeat)
        contents = {} if loader is None else loader.dataset.fingerprint()
    if ranks is not None:
        check_agreement(ranks, contents, "dataset")
    return loader


def _loader(
    dataset: Any,
    consumed_samples: SupportsIndex,
    config: LoaderConfig,
    validation: bool,
    repeat: bool,
) -> Any:
    if dataset is None or config.dataloader_type == "external":
        return dataset
    if validation and config.full_validation is not None:
        consumed_samples = 0
    return PretrainingDataLoader(
        dataset,
        config.sampler(len(dataset), consumed_samples, validation=validation),
        num_workers=config.num_workers,
        start_method=config.start_method,
        prefetch=config.prefetch,
        pin_memory=config.pin_memory,
        repeat=repeat,
    )


@dataclass(frozen=True)
class DataIterators:
    """What a training loop reads from. Unpacks into train, valid and test.

    Attributes:
        train: a loader, or None.
        valid: a loader, a dict of them by name for several validation sets, or None.
        test: a loader, or None.
        reads: whether this process reads. One that does not has no position: it takes any state of
            the run.
    """

    train: Any
    valid: Any
    test: Any
    reads: bool = True

    def __iter__(self) -> Any:
        """Train, valid and test."""
        return iter((self.train, self.valid, self.test))

    def loaders(self) -> dict[str, PretrainingDataLoader]:
        """All loaders by name: "train", "valid" or "valid.NAME", "test"; external ones left out."""
        named = {"train": self.train, "test": self.test}
        if isinstance(self.valid, Mapping):
            named.update((f"valid.{name}", loader) for name, loader in self.valid.items())
        else:
            named["valid"] = self.valid
        return {k: v for k, v in named.items() if isinstance(v, PretrainingDataLoader)}

    def state_dict(self) -> dict[str, Any]:
        """The state of each loader, by name: every validation set has a counter of its own."""
        return {name: loader.state_dict() for name, loader in self.loaders().items()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a state was taken; all loaders, or none if one of the states does not fit.

        Raises:
            TypeError: the state, or one in it, is no mapping.
            ValueError: names that are not the same, or a state that does not fit its loader. A
                process that does not read can only tell whether states are well formed.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                "the state of a run is a dict of its loaders' states, as state_dict() returns it; "
                f"got {type(state_dict).__name__}"
            )
        loaders = self.loaders()
        if not self.reads:
            for name, state in state_dict.items():
                with _Named(name):
                    read_state(state, _fingerprint_in(state))
            return
        if loaders.keys() != state_dict.keys():
            raise ValueError(
                f"the state has the loaders {sorted(state_dict)}, but here are {sorted(loaders)}; "
                "name the validation sets as when it was saved"
            )
        for name, loader in loaders.items():
            with _Named(name):
                loader.check_state_dict(state_dict[name])
        for name, loader in loaders.items():
            loader.load_state_dict(state_dict[name])

    def close(self) -> None:
        """Close all loaders."""
        for loader in self.loaders().values():
            loader.close()


class _Named:
    """Says of an error inside the `with` which loader's state it is about."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            error.add_note(f"in the state of the loader {self._name}; no loader was changed")


def _fingerprint_in(state: Any) -> Mapping[str, Any]:
    """The fingerprint of a state, where there is one."""
    found = state.get("fingerprint") if isinstance(state, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def build_train_valid_test_data_iterators(
    provider: Provider,
    sizes: Sequence[int | None],
    *,
    config: LoaderConfig,
    consumed_train_samples: SupportsIndex = 0,
    consumed_valid_samples: SupportsIndex | Mapping[str, SupportsIndex] = 0,
    multiple_validation_sets: bool = False,
    reads: bool = True,
    ranks: Ranks | None = None,
) -> DataIterators:
    """The three (or more) iterators of a run.

    Args:
        provider: makes the datasets from `sizes`; for several validation sets the second is a dict
            by name, or a list, whose names are "0", "1", ….
        sizes: samples of train, valid and test; see `BlendedMegatronDatasetBuilder`.
        config: sizes, ranks, kind of loaders.
        consumed_train_samples: where training goes on.
        consumed_valid_samples: where validation goes on; by name for several sets. Not used where
            a whole set is read at every evaluation.
        multiple_validation_sets: whether valid is several sets. Each of them, and with
            `config.full_validation` a single one too, starts again after its end.
        reads: whether this process reads at all. With tensor parallelism only rank 0 of a group
            does, and the others have no iterators (see `BroadcastIterator`); they take the run's
            state all the same.
        ranks: all processes that read, to compare their datasets; None compares nothing.

    Raises:
        ValueError: a provider that does not give three, one validation set where several were
            announced or the reverse, counters that fit no set.
        PlanMismatchError: processes have different datasets.
        RankFailedError: another process could not make its datasets or loaders.
    """
    if not reads:
        return DataIterators(None, None, None, reads=False)
    with FailureHeard(ranks):
        datasets = provider(sizes)
        consumed = consumed_train_samples, consumed_valid_samples
        iterators = _iterators(datasets, consumed, config, multiple_validation_sets)
        contents = {
            f"{name}.{field}": value
            for name, loader in iterators.loaders().items()
            for field, value in loader.dataset.fingerprint().items()
        }
    if ranks is not None:
        check_agreement(ranks, contents, "datasets")
    return iterators


def _iterators(
    datasets: Sequence[Any],
    consumed: tuple[SupportsIndex, SupportsIndex | Mapping[str, SupportsIndex]],
    config: LoaderConfig,
    multiple_validation_sets: bool,
) -> DataIterators:
    if len(datasets) != 3:
        raise ValueError(f"the provider gave {len(datasets)} datasets, need train, valid and test")
    train, valid, test = datasets
    several = isinstance(valid, Mapping | list | tuple)
    if several != multiple_validation_sets and valid is not None:
        raise ValueError(
            f"multiple_validation_sets is {multiple_validation_sets}, but the provider gave "
            f"{f'{len(valid)} validation sets' if several else 'one validation set'}; set it to "
            f"{several}"
        )
    repeat = multiple_validation_sets or config.full_validation is not None
    consumed_train, consumed_valid = consumed
    if several:
        named = valid if isinstance(valid, Mapping) else {str(i): v for i, v in enumerate(valid)}
        counters = _counters(consumed_valid, named)
        valid_loaders: Any = {
            name: _loader(one, counters[name], config, True, repeat) for name, one in named.items()
        }
    elif isinstance(consumed_valid, Mapping):
        raise ValueError(
            f"consumed_valid_samples is {consumed_valid}, but there is one validation set; "
            "give one number"
        )
    else:
        valid_loaders = _loader(valid, consumed_valid, config, True, repeat)
    return DataIterators(
        _loader(train, consumed_train, config, False, False),
        valid_loaders,
        _loader(test, 0, config, False, False),
    )


def _counters(
    consumed: SupportsIndex | Mapping[str, SupportsIndex], sets: Mapping[str, Any]
) -> Mapping[str, SupportsIndex]:
    if not isinstance(consumed, Mapping):
        if whole_number("consumed_valid_samples", consumed):
            raise ValueError(
                f"consumed_valid_samples is {consumed} for {len(sets)} validation sets, each of "
                f"which has its own counter; give a dict with the keys {sorted(sets)}"
            )
        return dict.fromkeys(sets, 0)
    if consumed.keys() != sets.keys():
        raise ValueError(
            f"consumed_valid_samples has counters for {sorted(consumed)}, but the validation sets "
            f"are {sorted(sets)}; give each its counter, 0 for a new one"
        )
    return consumed
