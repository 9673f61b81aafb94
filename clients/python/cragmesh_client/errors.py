"""Errors of the client, as one tree.

MeshError
  ├── Unreachable       no gateway answers there, or not in time
  ├── BadReply          what answered is no gateway of this version
  └── ProblemError      the gateway refused or failed; `problem` says why
      ├── Unauthorized  401: no API key, or not one of the gateway's
      ├── Forbidden     403: the key lacks the right
      ├── NotFound      404: there is none of that name, or none that the key may read
      ├── Invalid       400, 413, 422: `problem.errors` names fields and limits
      └── Overloaded    429, 503: come again after `retry_after_s`
"""

from cragmesh_client.contracts.base import Problem


class MeshError(Exception):
    """Base of all."""


class Unreachable(MeshError):
    """No gateway answers there, or not in time."""


class BadReply(MeshError):
    """What answered is no gateway of this version."""


class ProblemError(MeshError):
    """The gateway refused or failed."""

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__(f"{problem.status} {problem.title}" + (f": {problem.detail}" if problem.detail else ""))
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        return self.problem.status


class Unauthorized(ProblemError):
    """401"""


class Forbidden(ProblemError):
    """403"""


class NotFound(ProblemError):
    """404"""


class Invalid(ProblemError):
    """400, 413 or 422"""


class Overloaded(ProblemError):
    """429 or 503"""


KINDS: dict[int, type[ProblemError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    413: Invalid,
    422: Invalid,
    429: Overloaded,
    503: Overloaded,
}


def problem_error(problem: Problem, retry_after_s: float | None = None) -> ProblemError:
    """The exception of a problem document's status."""
    return KINDS.get(problem.status, ProblemError)(problem, retry_after_s)
