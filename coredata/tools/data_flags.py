"""The flags that say which data are read and how, by group, with the reference's names."""

import argparse

DATASETS = ("gpt", "bert", "t5")
"""Kinds of samples that no flag of the reference chooses: it has a script for each."""

LOADERS = ("single", "cyclic", "external", "batch")
"""Orders in which samples are read."""


def add_path_flags(group: argparse._ArgumentGroup) -> None:
    """The ways to name files."""
    for split in ("", "train-", "valid-", "test-"):
        group.add_argument(
            f"--{split}data-path",
            nargs="*",
            metavar="ITEM",
            help="prefixes, or weight prefix weight prefix …, cut by --split"
            if not split
            else f"the same for {split[:-1]} alone, files used whole",
        )
    group.add_argument(
        "--data-args-path", metavar="FILE", help="a file with what --data-path would be given"
    )
    group.add_argument(
        "--per-split-data-args-path",
        metavar="FILE",
        help='a JSON file {"train": [items], "valid": …, "test": …}',
    )


def add_blend_flags(parser: argparse.ArgumentParser) -> None:
    """Which files, in which shares."""
    group = parser.add_argument_group(
        "data", "Which files; exactly one of the ways to name them, or --mock-data."
    )
    add_path_flags(group)
    group.add_argument("--mock-data", action="store_true", help="make data up, read no files")
    group.add_argument(
        "--split",
        metavar="SHARES",
        help="shares of train, valid and test of every file of --data-path (default: 969,30,1)",
    )
    group.add_argument(
        "--dataset",
        choices=DATASETS,
        default="gpt",
        help="kind of samples; the reference has a script for each (default: gpt)",
    )
    group.add_argument(
        "--multiple-validation-sets",
        action="store_true",
        help="keep the files of the validation split apart",
    )
    group.add_argument(
        "--full-validation", action="store_true", help="validation is one epoch of its files"
    )
    group.add_argument(
        "--mid-level-dataset-surplus",
        type=float,
        default=0.005,
        metavar="SHARE",
        help="samples built for each file of a blend beyond its part (default: 0.005)",
    )


def add_sample_flags(parser: argparse.ArgumentParser) -> None:
    """What is in a sample."""
    group = parser.add_argument_group("samples")
    group.add_argument("--seq-length", type=int, metavar="N", help="tokens in a sample")
    group.add_argument(
        "--encoder-seq-length", type=int, metavar="N", help="another name of --seq-length"
    )
    group.add_argument("--decoder-seq-length", type=int, metavar="N", help="tokens of T5's decoder")
    group.add_argument(
        "--seed", type=int, default=1234, metavar="N", help="of every random number (1234)"
    )
    group.add_argument(
        "--reset-position-ids", action="store_true", help="count anew after each end of document"
    )
    group.add_argument(
        "--reset-attention-mask",
        action="store_true",
        help="hide what is before an end of document, in a dense mask",
    )
    group.add_argument(
        "--eod-mask-loss", action="store_true", help="no loss at end-of-document tokens"
    )
    group.add_argument(
        "--create-attention-mask-in-dataloader",
        action="store_true",
        help="make dense masks, S² bytes a sample (off, other than in the reference)",
    )
    group.add_argument(
        "--no-create-attention-mask-in-dataloader",
        action="store_false",
        dest="create_attention_mask_in_dataloader",
        help="make none, which is the default here",
    )
    group.add_argument(
        "--inter-document-masking",
        action="store_true",
        help="add cu_seqlens and max_seqlen, the bounds of documents",
    )
    group.add_argument(
        "--segment-ids", action="store_true", help="add segment_ids (not in the reference)"
    )
    group.add_argument(
        "--output-dtype",
        choices=("int64", "int32"),
        default="int64",
        help="of tokens, labels and position ids (int64; not in the reference)",
    )
    group.add_argument(
        "--allow-ambiguous-pad-tokens",
        action="store_true",
        help="keep a pad id that is another special id too",
    )


def add_masked_flags(parser: argparse.ArgumentParser) -> None:
    """What is masked in BERT's and T5's samples."""
    group = parser.add_argument_group("BERT and T5")
    group.add_argument(
        "--mask-prob", type=float, default=0.15, metavar="P", help="share of tokens masked (0.15)"
    )
    group.add_argument(
        "--short-seq-prob", type=float, default=0.1, metavar="P", help="shorter samples (0.1)"
    )
    group.add_argument(
        "--bert-no-binary-head",
        action="store_false",
        dest="bert_binary_head",
        help="samples are not two halves of which the second may be another text's",
    )
    group.add_argument(
        "--masking-word-start",
        metavar="TEXT",
        help='how a piece that begins a word begins, "▁" or "Ġ", if not WordPiece (not in the '
        "reference)",
    )
    group.add_argument(
        "--no-masking-full-word",
        action="store_false",
        dest="masking_do_full_word",
        help="mask pieces of words by themselves (not in the reference)",
    )


def add_infilling_flags(parser: argparse.ArgumentParser) -> None:
    """Fill in the middle."""
    group = parser.add_argument_group("infilling")
    group.add_argument("--fim-data", action="store_true", help="permute samples for infilling")
    group.add_argument(
        "--fim-rate", type=float, default=0.5, metavar="P", help="share of pieces permuted (0.5)"
    )
    group.add_argument(
        "--fim-spm-rate", type=float, default=0.5, metavar="P", help="share of them as SPM (0.5)"
    )
    group.add_argument(
        "--fim-split-sample", metavar="TOKEN", help="a token that ends a fragment of a document"
    )
    group.add_argument(
        "--fim-fragment-rate", type=float, metavar="P", help="share of fragments permuted"
    )
    group.add_argument("--fim-no-prefix", metavar="TEXT", help="leave pieces alone that begin so")
    for name in ("prefix", "middle", "suffix", "pad", "eod"):
        spelling = "<|endoftext|>" if name == "eod" else f"<fim_{name}>"
        group.add_argument(
            f"--fim-{name}-token", default=spelling, metavar="TOKEN", help=f"({spelling})"
        )
    group.add_argument(
        "--fim-randomness",
        choices=("sample", "stream"),
        default="sample",
        help="draws follow from the sample's number, or as in the reference from the order of "
        "reading (sample; not in the reference)",
    )


def add_conversation_flags(parser: argparse.ArgumentParser) -> None:
    """Conversations and samples of varying length."""
    group = parser.add_argument_group("conversations and samples of varying length")
    group.add_argument("--sft", action="store_true", help="packs of conversations")
    group.add_argument(
        "--sft-tokenizer-prompt-format",
        metavar="NAME",
        default="assistant",
        help="what counts in the loss: assistant, default (all) or identity (assistant)",
    )
    group.add_argument(
        "--chat-template",
        metavar="PATH",
        help="a .jinja file or a model's directory, if not beside the tokenizer (not in the "
        "reference)",
    )
    group.add_argument(
        "--use-varlen-dataset", action="store_true", help="samples of varying length, to be packed"
    )
    group.add_argument(
        "--varlen-sbhd-validation", action="store_true", help="the same, padded instead of packed"
    )
    for kind in ("sft", "varlen"):
        group.add_argument(
            f"--{kind}-mock-dataset-config-json",
            metavar="JSON",
            help="lengths of made-up samples: JSON text, or a file of it",
        )
    group.add_argument(
        "--skip-bad-rows",
        action="store_true",
        help="leave out lines that are no JSON objects (not in the reference)",
    )
    group.add_argument(
        "--samples-without-loss",
        choices=("count", "refuse"),
        default="count",
        help="what becomes of them (count; not in the reference)",
    )


def add_tokenizer_flags(parser: argparse.ArgumentParser) -> None:
    """Which tokenizer."""
    group = parser.add_argument_group("tokenizer")
    group.add_argument(
        "--tokenizer-type", metavar="TYPE", help="guessed from the files if left out"
    )
    group.add_argument(
        "--tokenizer-model", metavar="PATH", help="a tokenizer.json, or a directory with one"
    )
    group.add_argument("--vocab-file", metavar="PATH", help="GPT-2's vocab.json")
    group.add_argument("--merge-file", metavar="PATH", help="GPT-2's merges.txt")
    group.add_argument("--vocab-size", type=int, metavar="N", help="of tokenizers without files")
    group.add_argument("--eod", metavar="TOKEN", help="what ends a document, if not found")
    group.add_argument(
        "--tokenizer-identifiers",
        metavar="JSON",
        help="what caches know the tokenizer by: JSON text, a file of it, or the description.txt "
        "of a cache that is to be found again, such as one that the reference wrote",
    )


def add_cache_flags(parser: argparse.ArgumentParser) -> None:
    """Caches, and how files are opened."""
    group = parser.add_argument_group("caches and files")
    group.add_argument("--data-cache-path", metavar="DIR", help="directory of index arrays")
    group.add_argument(
        "--dataloader-fast-cache-load", action="store_true", help="trust that caches are complete"
    )
    group.add_argument(
        "--dataloader-defer-npy-index-mmap",
        action="store_true",
        help="open index arrays only when a sample is read",
    )
    group.add_argument(
        "--per-dataset-sequences-path",
        metavar="FILE",
        help="what `coredata sequences` wrote, so that no header is read",
    )
    group.add_argument(
        "--num-dataset-builder-threads", type=int, default=1, metavar="N", help="(1)"
    )
    group.add_argument(
        "--no-mmap-bin-files",
        action="store_false",
        dest="mmap_bin_files",
        help="read token files by position instead of mapping them",
    )
    group.add_argument(
        "--object-storage-cache-path", metavar="DIR", help="accepted; nothing needs it here"
    )


def add_loading_flags(parser: argparse.ArgumentParser) -> None:
    """How much is read, by whom."""
    group = parser.add_argument_group("batches and steps")
    for name, text in (
        ("micro-batch-size", "samples that one rank takes at once"),
        ("global-batch-size", "samples of a step (default: micro batch × data-parallel ranks)"),
        ("train-iters", "steps of the run"),
        ("train-samples", "samples of the run, instead of --train-iters"),
    ):
        group.add_argument(f"--{name}", type=int, metavar="N", help=text)
    group.add_argument(
        "--eval-interval", type=int, default=1000, metavar="N", help="steps between evaluations"
    )
    group.add_argument(
        "--eval-iters", type=int, default=100, metavar="N", help="steps of an evaluation (100)"
    )
    group.add_argument(
        "--num-samples",
        nargs=3,
        metavar=("TRAIN", "VALID", "TEST"),
        help='samples of each, instead of all of the above; "epoch" for what one epoch gives '
        "(not in the reference)",
    )
    group.add_argument("--skip-train", action="store_true", help="evaluate once, do not train")
    group.add_argument(
        "--skip-samples",
        metavar="LIST",
        help="training samples to pass over: numbers and ranges such as 17,40-55, or a file of "
        "these (not in the reference)",
    )
    group.add_argument(
        "--rampup-batch-size",
        nargs="*",
        metavar="N",
        help="first size, increment, samples over which the batch size grows",
    )
    group.add_argument(
        "--dataloader-type", choices=LOADERS, help="order of samples (single if not given)"
    )
    group.add_argument(
        "--no-data-sharding", action="store_false", dest="data_sharding", help="cyclic only"
    )
    group.add_argument(
        "--num-workers", type=int, default=2, metavar="N", help="processes that read, per rank (2)"
    )


def add_parallel_flags(parser: argparse.ArgumentParser) -> None:
    """Sizes that batch sizes and padding follow from."""
    group = parser.add_argument_group("parallel sizes", "as far as data depend on them")
    group.add_argument(
        "--data-parallel-size",
        type=int,
        metavar="N",
        help="default: ranks / (tensor × pipeline × context); ranks are WORLD_SIZE",
    )
    for kind in ("tensor-model", "pipeline-model", "context"):
        group.add_argument(f"--{kind}-parallel-size", type=int, default=1, metavar="N", help="(1)")
    group.add_argument("--sequence-parallel", action="store_true", help="pad to its size")
    for kind in ("dynamic", "hybrid"):
        group.add_argument(
            f"--{kind}-context-parallel", action="store_true", help="pad to all its sizes"
        )
