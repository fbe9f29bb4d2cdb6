"""Train a small transformer, alone or with several processes by torchrun.

    python scripts/train_torch.py --directory run
    torchrun --standalone --nproc-per-node 4 scripts/train_torch.py --directory run

It reads text that every machine has, or what flags named as in Megatron-LM say, such as
`--data-path 0.7 code 0.3 prose --tokenizer-model tokenizer.json`.

A run that is killed goes on from its last checkpoint with the same command, on as many processes
as one likes. Each step prints its loss and a digest of its global batch, so that one can see that
the batches are those of a run that was never killed.
"""

import argparse
import hashlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

try:
    import torch
    import torch.distributed as dist
    from coredata_torch import (
        LoaderConfig,
        build_train_valid_test_data_iterators,
        torch_ranks,
    )
    from torch import Tensor, nn
    from torch.nn import functional

    from coredata import add_data_arguments, datasets_from_args
    from coredata.datasets.ranks import Ranks, SingleProcess, build_in_turn
    from coredata.preprocess import preprocess
    from coredata.storage import atomic_write
    from coredata.text import Tokenizer, demo_tokenizer
    from coredata.tools.data_tokenizer import tokenizer_from_args
    from coredata.tools.data_words import in_flags
    from coredata.tools.demo_text import json_lines, library_prose, library_sources, take
except ModuleNotFoundError as missing:
    raise SystemExit(f"train_torch.py: {missing}. Install: pip install 'coredata[torch]'") from None

TEXT_BYTES = 600_000
SHARES = {"code": 0.7, "prose": 0.3}
DATA = ("data_path", "train_data_path", "data_args_path", "per_split_data_args_path")
DIMENSION, HEADS, LAYERS = 64, 4, 2


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


def choose_data(args: argparse.Namespace, ranks: Ranks) -> Tokenizer:
    """Without flags about data, those of both sources, which are made if need be.

    Returns:
        The tokenizer.
    """
    args.segment_ids = True  # which keep documents apart in the model
    if args.data_cache_path is None:
        args.data_cache_path = str(Path(args.directory) / "cache")
    if args.mock_data or any(getattr(args, name) for name in DATA):
        return tokenizer_from_args(args)
    build_in_turn(ranks, "shared", lambda: tokenise(Path(args.directory)))
    args.data_path, args.split = [], "98,1,1"
    for name, share in SHARES.items():
        args.data_path += [str(share), str(Path(args.directory) / f"{name}_text_document")]
    return demo_tokenizer()


class Block(nn.Module):
    """Attention within documents, and two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(DIMENSION), nn.LayerNorm(DIMENSION)
        self.qkv = nn.Linear(DIMENSION, 3 * DIMENSION)
        self.out = nn.Linear(DIMENSION, DIMENSION)
        self.wide, self.back = nn.Linear(DIMENSION, 256), nn.Linear(256, DIMENSION)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`mask`: (B, 1, S, S), True where a query may see a key."""
        batch, size, _ = x.shape
        qkv = self.qkv(self.norm_1(x)).view(batch, size, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*qkv, attn_mask=mask)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, size, -1))
        return x + self.back(functional.gelu(self.wide(self.norm_2(x))))


class Model(nn.Module):
    """A decoder that no document of a sample can see another document through."""

    def __init__(self, vocab_size: int, sequence_length: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, DIMENSION)
        self.positions = nn.Embedding(sequence_length, DIMENSION)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIMENSION)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Logits (B, S, V) from `tokens`, `position_ids` and `segment_ids`."""
        x = self.tokens(batch["tokens"]) + self.positions(batch["position_ids"])
        segments = batch["segment_ids"]
        size = segments.shape[1]
        mask = (segments[:, :, None] == segments[:, None, :]) & torch.ones(size, size).tril().bool()
        for block in self.blocks:
            x = block(x, mask[:, None])
        return functional.linear(self.norm(x), self.tokens.weight)


def loss_sums(model: Model, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The loss over all tokens that count, and their number."""
    logits = model(batch).flatten(0, 1)
    loss = functional.cross_entropy(logits, batch["labels"].flatten(), reduction="none")
    counts = batch["loss_mask"].flatten()
    return (loss * counts).sum(), counts.sum()


@dataclass(frozen=True)
class World:
    """This process among those that train."""

    ranks: Ranks

    @property
    def size(self) -> int:
        return self.ranks.world_size

    def sum(self, tensor: Tensor) -> Tensor:
        """Over all processes."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def digest(self, micro_batches: list[dict[str, Tensor]]) -> str:
        """Of a global batch, in the order of its samples, whoever read them."""
        mine = " ".join(_hash(batch) for batch in micro_batches)
        rounds = zip(*(text.split() for text in self.ranks.all_gather(mine)), strict=True)
        rows = "".join(rows for ranks in rounds for rows in ranks)
        return hashlib.sha256(rows.encode()).hexdigest()[:12]


def _hash(batch: dict[str, Tensor]) -> str:
    rows = zip(*(batch[name] for name in sorted(batch)), strict=True)
    return "".join(
        hashlib.sha256(b"".join(field.numpy().tobytes() for field in row)).hexdigest()
        for row in rows
    )


def train(args: argparse.Namespace, world: World) -> None:
    """All steps from the last checkpoint on."""
    directory, ranks = Path(args.directory), world.ranks
    tokenizer = choose_data(args, ranks)

    def provider(sizes: Sequence[int | None]) -> list[Any]:
        return datasets_from_args(args, sizes=sizes, tokenizer=tokenizer, ranks=ranks)

    loaders = LoaderConfig(
        args.micro_batch_size,
        ranks.rank,
        world.size,
        dataloader_type=args.dataloader_type or "single",
        data_sharding=args.data_sharding,
        global_batch_size=args.global_batch_size,
        num_workers=args.num_workers,
    )
    samples = args.train_iters * args.global_batch_size
    rounds = args.global_batch_size // (args.micro_batch_size * world.size)
    data = build_train_valid_test_data_iterators(
        provider, [samples, 0, 0], config=loaders, ranks=ranks
    )
    torch.manual_seed(0)
    model = Model(tokenizer.vocab_size, args.seq_length)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02) if parameter.dim() > 1 else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    checkpoint, done = directory / "checkpoint.pt", 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        data.load_state_dict(saved["data"])
        done = saved["step"]
    for step in range(done + 1, args.train_iters + 1):
        micro_batches = list(islice(data.train, rounds))
        if len(micro_batches) < rounds:
            if ranks.rank == 0:
                print(f"no more samples after step {step - 1}")
            break
        loss, digest = take_step(model, optimizer, micro_batches, world)
        if ranks.rank == 0:
            print(f"step {step} loss {loss:.4f} batch {digest}", flush=True)
        if ranks.rank == 0 and step % args.checkpoint_interval == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            with atomic_write(str(checkpoint)) as file:
                torch.save({**state, "data": data.state_dict(), "step": step}, file)
        if step == args.die_after:
            ranks.all_gather("all have come as far")
            os.kill(os.getpid(), signal.SIGKILL)
    data.close()


def take_step(
    model: Model,
    optimizer: torch.optim.Optimizer,
    micro_batches: list[dict[str, Tensor]],
    world: World,
) -> tuple[float, str]:
    """One global batch; the mean loss over its tokens, and its digest."""
    sums = torch.zeros(2)
    optimizer.zero_grad()
    for batch in micro_batches:
        loss, count = loss_sums(model, batch)
        loss.backward()
        sums += torch.stack([loss.detach(), count])
    world.sum(sums)
    for parameter in model.parameters():
        if parameter.grad is not None:
            world.sum(parameter.grad).div_(sums[1])
    optimizer.step()
    return (sums[0] / sums[1]).item(), world.digest(micro_batches)


def run(args: argparse.Namespace, world: World) -> None:
    """Train; what a user can mend ends it with one line."""
    try:
        train(args, world)
    except (ValueError, OSError, LookupError, ImportError) as error:
        if os.environ.get("COREDATA_TRACEBACK"):
            raise
        raise SystemExit(f"train_torch.py: {in_flags(str(error))}") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--directory", required=True, help="data, index cache and checkpoint")
    add_data_arguments(parser)
    parser.add_argument("--steps", type=int, dest="train_iters", help="as --train-iters (60)")
    parser.add_argument("--workers", type=int, dest="num_workers", help="as --num-workers (0)")
    parser.set_defaults(train_iters=60, seq_length=128, num_workers=0)
    parser.set_defaults(global_batch_size=16, micro_batch_size=2)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--checkpoint-interval", type=int, default=10)
    parser.add_argument("--die-after", type=int, help="kill all processes after this step")
    args = parser.parse_args()
    for name in ("train_samples", "rampup_batch_size"):
        if getattr(args, name) is not None:
            parser.error(f"--{name.replace('_', '-')}: this trainer takes --steps and one size")
    kinds = {"--sft": args.sft, "--use-varlen-dataset": args.use_varlen_dataset}
    kinds[f"--dataset {args.dataset}"] = args.dataset != "gpt"
    for flag, given in kinds.items():
        if given:
            parser.error(f"{flag}: this trainer is for gpt; train_jax.py packs conversations")
    if "RANK" not in os.environ:
        run(args, World(SingleProcess()))
        return
    dist.init_process_group("gloo")
    run(args, World(torch_ranks()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
