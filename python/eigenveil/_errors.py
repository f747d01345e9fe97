# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, and who has to act on it; and what is worth a warning."""


class EigenveilError(Exception):
    """Any error of this package. Its sentences are those of the library."""


class UsageError(EigenveilError, ValueError):
    """An option is wrong: change the call."""


class BadInput(EigenveilError, ValueError):
    """The rows are wrong: change the data or the schema. Its words are for the operator: they may quote a row."""


class BudgetRefused(EigenveilError):
    """The privacy budget does not allow it. Nothing was charged."""


class InternalError(EigenveilError, RuntimeError):
    """The machine or the library itself failed."""


class NotPrivateWarning(UserWarning):
    """What was computed is not private."""


class ReleaseWarning(UserWarning):
    """What a release says about itself, from released numbers and public facts alone."""


class ConcernWarning(ReleaseWarning):
    """Said before anything is charged, from public facts alone: made an error, it keeps the charge from happening."""
