"""The words for what became of wishes: granted, refused, put back."""

from dataclasses import dataclass

from rtscope.tuning.remedies import Wish


@dataclass(frozen=True, slots=True)
class Done:
    """A wish that was granted."""

    wish: Wish
    """`old` is what the agent found."""

    @property
    def changed(self) -> bool:
        """Whether it was otherwise before."""
        return self.wish.old != self.wish.value


@dataclass(frozen=True, slots=True)
class NotDone:
    """A wish that was refused."""

    wish: Wish
    cause: str
    reason: str


@dataclass(frozen=True, slots=True)
class PutBack:
    """A setting that has its old value again."""

    knob: str
    value: str


@dataclass(frozen=True, slots=True)
class Tuning:
    """What became of a list of wishes."""

    done: tuple[Done, ...] = ()
    refused: tuple[NotDone, ...] = ()
    left_by_others: tuple[PutBack, ...] = ()
    """What a killed agent had left changed, and was put back first."""
