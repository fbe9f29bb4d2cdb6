"""Train, valid and test: which share of a file each one covers."""

from enum import Enum


class Split(Enum):
    """The three parts of a training corpus, numbered as everywhere in the field."""

    train = 0
    valid = 1
    test = 2
