"""Train a small transformer on a mesh data x model.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 JAX_PLATFORMS=cpu \\
        python scripts/train_jax.py --directory run --mesh 4,2

It reads text that every machine has, or what flags named as in Megatron-LM say, such as
`--data-path 0.7 code 0.3 prose --tokenizer-model tokenizer.json`. With `--use-varlen-dataset
--sequence-packing-scheduler best_fit_decreasing`, conversations are packed into rows of one length:
by the plan of `coredata prepare-cache --packing-plan`, or by one that is made at the start.

With several processes, each is also told `--coordinator HOST:PORT --processes N --process R`.
A run that ends goes on from its last checkpoint with the same command, on as many processes and on
whatever mesh one likes. Each step prints its loss and a checksum of its global batch, so that one
can see that the batches are those of a run that never stopped.
"""

import argparse
import os
import time
from itertools import islice
from pathlib import Path
from typing import Any

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import orbax.checkpoint as ocp
    from coredata_jax import JaxRanks, PackedBatches, ShardedBatches, check_same_plan
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    from coredata import add_data_arguments, datasets_from_args
    from coredata.datasets.ranks import Ranks, build_in_turn
    from coredata.preprocess import preprocess
    from coredata.storage import atomic_write
    from coredata.text import Tokenizer, demo_tokenizer
    from coredata.tools.data_packing import packing_from_args
    from coredata.tools.data_tokenizer import tokenizer_from_args
    from coredata.tools.data_words import in_flags
    from coredata.tools.demo_text import json_lines, library_prose, library_sources, take
    from coredata.tools.packing_flags import ROW_PACKERS
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"train_jax.py: {missing}. Install: pip install 'coredata[jax]' orbax-checkpoint"
    ) from None

TEXT_BYTES = 400_000
SHARES = {"code": 0.7, "prose": 0.3}
DATA = ("data_path", "train_data_path", "data_args_path", "per_split_data_args_path")
DIMENSION, HEADS, LAYERS, WIDE = 64, 8, 2, 256

Tree = Any


def tokenise(directory: Path) -> None:
    """Token files of two sources, if they are not there yet."""
    directory.mkdir(parents=True, exist_ok=True)
    library = list(library_sources())
    sources = {"code": iter(library), "prose": library_prose(islice(library, 200))}
    for name, documents in sources.items():
        if (directory / f"{name}_text_document.idx").exists():
            continue
        text = directory / f"{name}.jsonl"
        with atomic_write(str(text)) as file:
            file.writelines(json_lines(take(documents, TEXT_BYTES)))
        preprocess(str(text), str(directory / name), demo_tokenizer(), append_eod=True)


def is_packed(args: argparse.Namespace) -> bool:
    """Whether rows hold samples of varying length."""
    return bool(args.use_varlen_dataset or args.sft)


def choose_data(args: argparse.Namespace, ranks: Ranks) -> Tokenizer:
    """Without flags about data, those of both sources, which are made if need be.

    Returns:
        The tokenizer.
    """
    if not is_packed(args):
        args.segment_ids = True  # which keep documents apart in the model
    args.output_dtype = "int32"
    if args.data_cache_path is None:
        args.data_cache_path = str(Path(args.directory) / "cache")
    if args.mock_data or any(getattr(args, name) for name in DATA):
        return tokenizer_from_args(args)
    build_in_turn(ranks, "shared", lambda: tokenise(Path(args.directory)))
    args.data_path, args.split = [], "98,1,1"
    for name, share in SHARES.items():
        args.data_path += [str(share), str(Path(args.directory) / f"{name}_text_document")]
    return demo_tokenizer()


def shapes(vocab_size: int, sequence_length: int) -> dict[str, tuple[tuple[int, ...], P]]:
    """Every parameter: its shape, and which of its axes the mesh's axis `model` splits."""
    layers = {
        "qkv": ((LAYERS, DIMENSION, 3, HEADS, DIMENSION // HEADS), P(None, None, None, "model")),
        "out": ((LAYERS, HEADS, DIMENSION // HEADS, DIMENSION), P(None, "model")),
        "wide": ((LAYERS, DIMENSION, WIDE), P(None, None, "model")),
        "back": ((LAYERS, WIDE, DIMENSION), P(None, "model")),
    }
    tables = {"tokens": (vocab_size, DIMENSION), "positions": (sequence_length, DIMENSION)}
    return {**{name: (shape, P()) for name, shape in tables.items()}, **layers}


def normed(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def mean_loss(parameters: Tree, batch: dict[str, jax.Array]) -> jax.Array:
    """Over the tokens that count; attention stays within documents."""
    x = parameters["tokens"][batch["tokens"]] + parameters["positions"][batch["position_ids"]]
    segments = batch["segment_ids"]
    same = segments[:, None, :, None] == segments[:, None, None, :]
    seen = same & jnp.tril(jnp.ones((segments.shape[1],) * 2, bool))
    for layer in range(LAYERS):
        qkv = jnp.einsum("bsd,dthe->tbhse", normed(x), parameters["qkv"][layer])
        query, key, value = qkv
        scores = jnp.einsum("bhqe,bhke->bhqk", query, key) * (DIMENSION // HEADS) ** -0.5
        mixed = jax.nn.softmax(jnp.where(seen, scores, -1e9)) @ value
        x = x + jnp.einsum("bhse,hed->bsd", mixed, parameters["out"][layer])
        x = x + jax.nn.gelu(normed(x) @ parameters["wide"][layer]) @ parameters["back"][layer]
    log_likelihoods = jax.nn.log_softmax(normed(x) @ parameters["tokens"].T)
    losses = -jnp.take_along_axis(log_likelihoods, batch["labels"][..., None], axis=-1)[..., 0]
    return (losses * batch["loss_mask"]).sum() / jnp.maximum(batch["loss_mask"].sum(), 1)


def checksum(batch: dict[str, jax.Array]) -> jax.Array:
    """Of a global batch, however it is sharded: every value times a weight of its place."""
    total = jnp.uint32(0)
    for number, name in enumerate(sorted(batch)):
        values = batch[name].astype(jnp.uint32)
        places = jnp.arange(values.size, dtype=jnp.uint32).reshape(values.shape)
        total += (values * (places * jnp.uint32(2654435761) + jnp.uint32(2 * number + 1))).sum()
    return total


def train_step(state: Tree, batch: dict[str, jax.Array], learning_rate: float) -> Tree:
    """One step of Adam; the new state, the loss, and the checksum of the batch."""
    loss, gradients = jax.value_and_grad(mean_loss)(state["parameters"], batch)
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
    square = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["square"], gradients)
    scale = learning_rate * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    parameters = jax.tree.map(
        lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), state["parameters"], mean, square
    )
    state = {"parameters": parameters, "mean": mean, "square": square, "count": count}
    return state, loss, checksum(batch)


def first_state(vocab_size: int, sequence_length: int) -> Tree:
    sizes = shapes(vocab_size, sequence_length)
    keys = jax.random.split(jax.random.key(0), len(sizes))
    parameters = {
        name: 0.02 * jax.random.normal(key, shape)
        for key, (name, (shape, _)) in zip(keys, sizes.items(), strict=True)
    }
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return {"parameters": parameters, "mean": zeros, "square": zeros, "count": jnp.float32(0)}


def open_batches(
    args: argparse.Namespace, dataset: Any, mesh: Mesh, ranks: Ranks
) -> tuple[Any, int]:
    """The batches of the run, and the tokens of a row of them."""
    if not is_packed(args):
        return ShardedBatches(dataset, args.global_batch_size, mesh), args.seq_length
    windows: Any = packing_from_args(args, dataset)
    build_in_turn(ranks, "shared", windows.open)
    packing = {name: getattr(windows, name) for name in ("window", "packer", "max_segments")}
    batches = PackedBatches(
        dataset, args.global_batch_size, windows.limit, mesh, cached=True, **packing
    )
    return batches, windows.limit


def train(args: argparse.Namespace) -> None:
    """All steps from the last checkpoint on."""
    ranks = JaxRanks.from_distributed()
    mesh = Mesh(np.array(jax.devices()).reshape(args.mesh), ("data", "model"))
    tokenizer = choose_data(args, ranks)
    sizes = [args.train_iters * args.global_batch_size, 0, 0]
    dataset, _, _ = datasets_from_args(args, sizes=sizes, tokenizer=tokenizer, ranks=ranks)
    batches, length = open_batches(args, dataset, mesh, ranks)
    vocab_size = tokenizer.vocab_size
    repeated = NamedSharding(mesh, P())
    layout = {
        name: NamedSharding(mesh, axes) for name, (_, axes) in shapes(vocab_size, length).items()
    }
    shardings = {"parameters": layout, "mean": layout, "square": layout, "count": repeated}
    start = jax.jit(first_state, static_argnums=(0, 1), out_shardings=shardings)
    take_step = jax.jit(train_step, donate_argnums=0, out_shardings=(shardings, repeated, repeated))
    state, done, waited, begun = start(vocab_size, length), 0, 0.0, time.perf_counter()
    with (
        ocp.CheckpointManager(Path(args.directory).absolute() / args.name) as checkpoints,
        batches,
    ):
        if checkpoints.latest_step() is not None:
            done = checkpoints.latest_step()
            asked = {"state": ocp.args.StandardRestore(state), "data": ocp.args.JsonRestore()}
            saved = checkpoints.restore(done, args=ocp.args.Composite(**asked))
            state = saved["state"]
            batches.load_state_dict(saved["data"])
        check_same_plan(batches, ranks)
        for step in range(done + 1, args.train_iters + 1):
            asked_at = time.perf_counter()
            batch = next(batches, None)
            if batch is None:
                if ranks.rank == 0:
                    print(f"no more samples after step {step - 1}")
                break
            waited += time.perf_counter() - asked_at
            state, loss, digest = take_step(state, batch, args.learning_rate)
            if ranks.rank == 0:
                print(f"step {step} loss {float(loss):.4f} batch {int(digest):08x}", flush=True)
            if step % args.checkpoint_interval == 0:
                items = {
                    "state": ocp.args.StandardSave(state),
                    "data": ocp.args.JsonSave(batches.state_dict()),
                }
                checkpoints.save(step, args=ocp.args.Composite(**items))
                checkpoints.wait_until_finished()  # The next step donates the state.
            if step == args.stop_after:
                break
    if ranks.rank == 0:
        print(f"waited for data {waited / (time.perf_counter() - begun):.1%} of the time")


def run(args: argparse.Namespace) -> None:
    """Train; what a user can mend ends it with one line."""
    try:
        train(args)
    except (ValueError, OSError, LookupError, ImportError) as error:
        if os.environ.get("COREDATA_TRACEBACK"):
            raise
        raise SystemExit(f"train_jax.py: {in_flags(str(error))}") from None


def mesh_sizes(text: str) -> tuple[int, int]:
    """The sizes of the axes data and model in text such as "4,2".

    Raises:
        argparse.ArgumentTypeError: it is no such text.
    """
    sizes = text.split(",")
    if len(sizes) != 2 or not all(size.strip().isdecimal() and int(size) for size in sizes):
        raise argparse.ArgumentTypeError(
            f"{text!r}: need two sizes with a comma between them, of data and model, such as 1,1"
        )
    return int(sizes[0]), int(sizes[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--directory", required=True, help="data, index cache and checkpoints")
    parser.add_argument("--name", default="run", help="directory of the checkpoints")
    parser.add_argument(
        "--mesh", required=True, type=mesh_sizes, help="sizes of the axes data and model: 4,2"
    )
    add_data_arguments(parser)
    parser.add_argument("--steps", type=int, dest="train_iters", help="as --train-iters (60)")
    parser.set_defaults(train_iters=60, seq_length=128, global_batch_size=16)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--checkpoint-interval", type=int, default=10)
    parser.add_argument("--stop-after", type=int, help="leave after this step, as if killed")
    parser.add_argument("--coordinator", help="HOST:PORT of process 0")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--process", type=int)
    args = parser.parse_args()
    for name in ("train_samples", "rampup_batch_size"):
        if getattr(args, name) is not None:
            parser.error(f"--{name.replace('_', '-')}: this trainer takes --steps and one size")
    if args.dataloader_type not in (None, "single"):
        parser.error(f"--dataloader-type {args.dataloader_type}: this trainer takes single alone")
    if args.dataset != "gpt":
        parser.error(f"--dataset {args.dataset}: this trainer is for gpt")
    if is_packed(args) and args.sequence_packing_scheduler not in ROW_PACKERS:
        parser.error(
            "conversations are packed into rows of one length here; give "
            f"--sequence-packing-scheduler {ROW_PACKERS[0]}"
        )
    if args.coordinator is not None:
        jax.distributed.initialize(args.coordinator, args.processes, args.process)
    run(args)


if __name__ == "__main__":
    main()
