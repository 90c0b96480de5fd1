"""Maps the names of users and groups to numeric ids of the operating system, and back.

Hadoop reports users and groups by name, and the operating system reports them by id. `Permissions`
contains only names.
"""

from __future__ import annotations

import grp
import pwd


def user_name(uid: int) -> str:
    """Returns a user's name, or the decimal uid if the host has no name for the user."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """Returns a group's name, or the decimal gid if the host has no name for the group."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def uid_of(name: str) -> int:
    """Returns a user's uid, or -1 if the host does not know the name; ``chown`` ignores -1."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return int(name) if name.isdecimal() else -1


def gid_of(name: str) -> int:
    """Returns a group's gid, or -1 if the host does not know the name; ``chown`` ignores -1."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return int(name) if name.isdecimal() else -1
