"""What can be wrong: with a file, and with a callback when it is exported, when it is bound, and when it is called."""


class JaxprismError(ValueError):
    """The base of all errors of jaxprism.

    Attributes:
      kind: what went wrong, in a word that stays the same from version to version. For files it is `format`
        (malformed), `unsupported` (newer than this version), `refused` (not fit for what was asked), `io` or `bug`.
      offset: the place in the file, in bytes, where it is known.
      hint: what to do about it, where that is known; it is also the last line of the message.
    """

    kind = "bug"

    def __init__(
        self, message: str, *, kind: str | None = None, offset: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.kind = self.kind if kind is None else kind
        self.offset = offset
        self.hint = hint


class CallbackError(JaxprismError):
    """The base of all errors about callbacks and their functions."""

    kind = "callback"


class CallbackNameError(CallbackError):
    """A name that a callback cannot have."""

    kind = "name"


class UnstableNameError(CallbackNameError):
    """A callback whose name would not survive an edit of the program, where strict names were asked for."""

    kind = "unstable-name"


class CallbackMetadataError(CallbackError):
    """Something a callback is called with cannot be written into the file, or not be read from it."""

    kind = "metadata"


class UnknownCallbackError(CallbackError):
    """A function was bound to a name that the file does not know."""

    kind = "unknown"


class UnboundCallbackError(CallbackError):
    """No function was bound to a name."""

    kind = "unbound"


class CallbackArityError(CallbackError):
    """A function does not take the arguments that its callback is called with."""

    kind = "arity"


class CallbackResultError(CallbackError):
    """A function returned something else than the program computes with."""

    kind = "result"


class CallbackPlatformError(CallbackError):
    """A callback is to run on a platform that cannot call it."""

    kind = "platform"


class CallbackContextError(CallbackError):
    """A function with callbacks is used where they cannot be called."""

    kind = "context"


class UnlowerError(CallbackError):
    """A file whose callbacks were lowered cannot be turned back."""

    kind = "unlower"


class UnstableNameWarning(UserWarning):
    """A callback whose name would not survive an edit of the program."""
