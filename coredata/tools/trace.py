"""`coredata trace`: what a training step saw, and which steps saw a document."""

import argparse
import sys
from typing import Any

from coredata.tools.output import count_of

HELP = "tell which documents a training step saw, or which steps saw a document"

_EPILOG = """\
Flags are those of training, the batch size among them. Steps count from 0: step t begins when t
steps are done, and is iteration t + 1 in Megatron-LM's log. With --state, that of a loader, the
flags are held to the state, its skip list is taken, and without another question the last step
before it is shown. Samples are named by their original numbers, those that a skip list takes, also
while one is active; --json gives their numbers among the kept samples too, as kept_number.
Where samples are packed into rows (--sequence-packing-scheduler best_fit_decreasing and the others
that fit), a step takes rows, and the packing plan says which samples these hold: it is read from
the cache, or made. Not followed are packed rows of --sft and of --rampup-batch-size, nor their
--state.
Exit code: 0 done, 2 it could not be done.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags: those of training, and what is asked."""
    from coredata.tools.data_arguments import add_data_arguments
    from coredata.tools.split_flags import add_split_arguments

    parser.epilog = _EPILOG
    asked = parser.add_argument_group("what is asked").add_mutually_exclusive_group()
    asked.add_argument("--step", type=int, metavar="T", help="what step T saw, from 0")
    asked.add_argument("--iteration", type=int, metavar="N", help="what iteration N saw, from 1")
    asked.add_argument(
        "--sample",
        type=int,
        metavar="K",
        help="where sample K is from, and its step; its original number, with a skip list too",
    )
    asked.add_argument("--document", type=int, metavar="D", help="which steps saw document D")
    more = parser.add_argument_group("more about it")
    more.add_argument("--path", metavar="PREFIX", help="of a blend: the file of --document")
    more.add_argument(
        "--until-step",
        type=int,
        metavar="T",
        help="look at the first T steps (default: all of the run)",
    )
    more.add_argument("--state", metavar="FILE", help="a loader's state, as JSON")
    more.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    add_split_arguments(parser)
    add_data_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Answer, from plans alone: no token is read, but where a packing plan has to be made.

    Raises:
        IndexError: a step, sample or document that does not exist.
        StateMismatchError: a ValueError; the state is of another dataset or order.
        ValueError: flags that make no sense.
        FileNotFoundError: a file is missing.
    """
    from coredata.loading import full_fingerprint, read_state
    from coredata.sampling import SkipList, TrainingSteps
    from coredata.tools.data_limits import check_possible, check_searchable
    from coredata.tools.opened_data import open_data, read_state_file, training_steps
    from coredata.tools.output import OK, print_json, progress, say
    from coredata.tools.packed_steps import PackedSteps, packed_steps, packs_rows
    from coredata.tools.skip_samples import read_skip_list, without
    from coredata.tools.trace_page import TracePage, answer_document, answer_sample, answer_step

    skip = read_skip_list(args.skip_samples if args.which == "train" else None)
    state = None if args.state is None else read_state_file(args.state, args.which)
    if state is not None and (args.skip_samples is None or args.which != "train"):
        skip = SkipList.parse(str(state["fingerprint"].get("skipped_samples", "")))
    with progress(lambda: "opening datasets"):
        data = open_data(args)
        dataset = without(data.split(args.which, args.set), skip)
    for note in data.notes:
        say("trace", note)
    if not len(dataset):
        raise ValueError(
            f"the skip list passes over all samples ({len(skip):,}): none is left for a step"
            if skip.ranges
            else f"the {args.which} split has no samples: there is no step"
        )
    plain = training_steps(args, len(dataset))
    steps: TrainingSteps | PackedSteps = plain
    if packs_rows(args):
        if state is not None:
            raise ValueError(
                "--state: trace cannot follow the state of packed rows; give --step, or --sample"
            )
        with progress(lambda: "planning rows"):
            steps = packed_steps(args, dataset, plain)
    step = _asked_step(args.step, args.iteration, steps, args.train_iters)
    if step is not None:
        flag = f"--step {args.step}" if args.iteration is None else f"--iteration {args.iteration}"
        if steps is plain:
            check_possible(args, plain.consumed_before(step + 1), asked=flag)
        if args.train_iters is not None and step >= args.train_iters:
            told = f"{flag} lies beyond the end of the run: --train-iters {args.train_iters}"
            say("trace", f"{told}. It is what a longer run over the same samples would see")
    if state is not None:
        consumed = read_state(state, full_fingerprint(dataset, plain.sampler))
        if step is None and args.sample is None and args.document is None:
            step = plain.step_at(consumed) - 1
            if step < 0:
                raise ValueError(
                    f"{args.state} was saved before the first step; give --step 0 for what comes"
                )
    until = args.train_iters if args.until_step is None else args.until_step
    if until is None and args.train_samples is not None and steps is plain:
        until = plain.step_at(args.train_samples)
    if args.sample is not None or args.document is not None:
        check_searchable(plain, until)
    with progress(lambda: "searching"):
        if args.document is not None:
            answer = answer_document(dataset, steps, args.document, args.path, until)
        elif args.sample is not None:
            answer = answer_sample(dataset, steps, args.sample, until)
        elif step is not None:
            answer = answer_step(dataset, steps, step)
        else:
            raise ValueError(
                "what is asked? Give --step, --iteration, --sample, --document or --state"
            )
    if args.json:
        print_json(answer)
    else:
        TracePage(sys.stdout).answer(answer)
    return OK


def _asked_step(
    step: int | None, iteration: int | None, steps: Any, train_iters: int | None
) -> int | None:
    """The step that is asked, in range of what there are samples for; None if none is."""
    from coredata.sampling import TrainingSteps

    asked, flag, first = (step, "step", 0) if iteration is None else (iteration, "iteration", 1)
    if asked is None:
        return None
    number = asked - first
    count = len(steps)
    cyclic = isinstance(steps, TrainingSteps) and steps.sampler.cyclic
    if number < 0 or (not cyclic and number >= count):
        if train_iters is not None:
            count = min(count, train_iters)
        numbered = f"numbered {first} to {count - 1 + first}" if count else "so none can be asked"
        raise IndexError(f"--{flag} {asked}: the run has {count_of(count, flag)}, {numbered}")
    return number
