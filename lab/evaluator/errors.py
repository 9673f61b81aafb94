"""What stops an evaluation. Everything that was written until then stays, and the same command goes on from there.

EvaluatorError
  ├── BadSource         the question file cannot be read
  ├── BadRun            the run's folder cannot be used: other settings, another process, no predictions
  ├── WriteFailed       the disk took no more
  └── Unreachable       the gateway, a service, the judge's model or a file's owner does not answer
"""


class EvaluatorError(Exception):
    """The message says what happened, and what to do about it where that is known."""


class BadSource(EvaluatorError):
    pass


class BadRun(EvaluatorError):
    pass


class WriteFailed(EvaluatorError):
    pass


class Unreachable(EvaluatorError):
    pass
