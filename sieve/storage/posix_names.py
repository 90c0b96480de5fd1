"""Names of users and groups for the numbers that the operating system keeps, and back."""

from __future__ import annotations

import grp
import pwd


def user_name(uid: int) -> str:
    """The user's name, or the number in decimal where the host knows none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """The group's name, or the number in decimal where the host knows none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def uid_of(name: str) -> int:
    """The number of a user, or -1 (``chown``'s "leave it") where the host knows none."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return int(name) if name.isdecimal() else -1


def gid_of(name: str) -> int:
    """The number of a group, or -1 (``chown``'s "leave it") where the host knows none."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return int(name) if name.isdecimal() else -1
