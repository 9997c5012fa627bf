"""What can be wrong with a callback that is exported."""


class CallbackError(ValueError):
    """The base of all errors about callbacks."""


class CallbackNameError(CallbackError):
    """A name that a callback cannot have."""


class UnstableNameError(CallbackNameError):
    """A callback whose name would not survive an edit of the program, where strict names were asked for."""


class CallbackMetadataError(CallbackError):
    """Something a callback is called with cannot be written into the file."""


class UnstableNameWarning(UserWarning):
    """A callback whose name would not survive an edit of the program."""
