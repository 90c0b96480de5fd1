"""Tests names of users and groups, and the ids of names that this host does not know."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable

import pytest

from sieve.storage.posix_names import gid_of, group_name, uid_of, user_name

UNKNOWN = 1_999_999_999


@pytest.mark.parametrize("id_of", [uid_of, gid_of])
def test_decimal_id_stands_for_itself(
    id_of: Callable[[str], int],
) -> None:
    """A decimal name, as Hadoop reports it, is an id. Any other unknown name has the id -1."""
    assert id_of(str(UNKNOWN)) == UNKNOWN
    assert id_of("nobody of this host") == -1
    assert id_of("-5") == -1


def test_names_of_this_host() -> None:
    """Names map to ids and back. An id without a name maps to a decimal number."""
    user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(os.getgid())
    assert (user_name(user.pw_uid), uid_of(user.pw_name)) == (user.pw_name, user.pw_uid)
    assert (group_name(group.gr_gid), gid_of(group.gr_name)) == (group.gr_name, group.gr_gid)
    assert user_name(UNKNOWN) == group_name(UNKNOWN) == str(UNKNOWN)
