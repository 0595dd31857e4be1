"""Every failure vpref raises on purpose, in one tree. Knows nothing of where they are raised or shown.

VprefError
├── ConfigError        the user's: a setting, key, path or file; found before the first request; exit code 2
├── BadImage           one image cannot be used: a record and a count, the run goes on
├── MalformedReply     a model's reply is not of the form asked for: asked again within a bound
├── CallFailed         one request got no reply though it was retried: the item fails, the run goes on
└── RunStopped         the run cannot go on, all stored replies stay; exit code 1
    ├── Misconfigured  a server refuses what the config says: no request would be answered; exit code 2
    └── Interrupted    a person or scheduler ended it (SIGINT, SIGTERM); exit code 128 + signal number
"""

from __future__ import annotations


class VprefError(Exception):
    """Base of all. Its text is one sentence for the user: what, where, what to do."""

    exit_code = 1


class ConfigError(VprefError):
    """A mistake that the user can mend, found before anything was sent."""

    exit_code = 2


class BadImage(VprefError):
    """An image that cannot be used; `kind` is the short name it is counted by."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class MalformedReply(VprefError):
    """A reply that breaks the form asked for.

    `kind` is one of `refused`, `cut`, `empty`, `not_json`, `wrong_shape`, `bad_choices`, and the text says
    what is wrong in words that the model can act on, since it is shown to it when it is asked again.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class CallFailed(VprefError):
    """No reply to one request; `kind` names why: `timeout`, `connection`, `http_429`, `http_400`, ..."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class RunStopped(VprefError):
    """Nothing more can be done in this run: quota spent, key revoked, disk full."""


class Misconfigured(RunStopped):
    """A mistake that the user can mend and only the server could find: a wrong key, an unknown model, a parameter
    that it does not take."""

    exit_code = 2


class Ended(BaseException):
    """Carries an error past code of others that catches and reports every Exception its own way."""

    def __init__(self, error: VprefError) -> None:
        super().__init__(str(error))
        self.error = error


class Interrupted(RunStopped):
    """The run was told to end by a signal; what was stored is replayed when the command is given again."""

    def __init__(self, signal_number: int, detail: str) -> None:
        super().__init__(detail)
        self.exit_code = 128 + signal_number
