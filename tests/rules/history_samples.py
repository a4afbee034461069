"""First attempts written as text: ``.`` passed, ``F`` failed, ``?`` proved nothing."""

from pytest_regcase.rules.flake import FirstAttempt

_FAILED = {".": False, "F": True, "?": None}


def attempts(outcomes: str, digests: str = "d", *, confirm_passed: bool = False) -> tuple[FirstAttempt, ...]:
    """One first attempt a sign, each of a session of its own."""
    return tuple(
        FirstAttempt(
            failed=_FAILED[sign],
            digests=digests,
            session_id=f"{digests}-{number}",
            confirm_passed=confirm_passed and sign == "F",
        )
        for number, sign in enumerate(outcomes)
    )


def one_digest_each(outcomes: str, *, confirm_passed: bool = False) -> tuple[FirstAttempt, ...]:
    """One first attempt a sign, each on digests of its own: a new revision every night."""
    return tuple(
        each
        for number, sign in enumerate(outcomes)
        for each in attempts(sign, f"r{number}", confirm_passed=confirm_passed)
    )
