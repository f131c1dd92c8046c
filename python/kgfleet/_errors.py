"""What can go wrong. An answer is never a reason: whatever a model writes gets a score."""


class KgfleetError(Exception):
    """The base of all errors of this package."""


class RequestError(KgfleetError):
    """A call that the program cannot make sense of."""


class MaterialError(KgfleetError):
    """A pack, a task, a reference, a graph or a run that cannot be used."""


class ScorerDied(KgfleetError):
    """The program ended, or its evaluation processes were lost, while an answer waited. The next call starts a new one."""


class ProgramError(KgfleetError):
    """The program ``kgfleet`` is missing, or ended with an error."""
