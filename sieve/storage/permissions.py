"""Who may read a file, and how to give an index no more readers than its table has.

POSIX rules, which HDFS shares: a user is judged by the first class (owner, group, other) he
belongs to, and needs the execute bit of every folder above a file to reach it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Permissions:
    """Owner, group and the nine permission bits of a file or folder.

    Attributes:
        owner: user name (decimal uid where the system knows no name).
        group: group name (decimal gid where the system knows no name).
        mode: the bits ``rwxrwxrwx``, 0 to 0o777.
    """

    owner: str
    group: str
    mode: int


def without_acl(permissions: Permissions) -> Permissions:
    """What is certain of a file that carries an access control list: its owner's bits alone.

    Under a list the group bits are its mask, not the group's rights, and a named user may be
    refused what everybody else is granted; copying the bits could let somebody in.
    """
    return replace(permissions, mode=permissions.mode & 0o700)


def behind(permissions: Permissions, folder: Permissions) -> Permissions:
    """What is left of a file's permissions when it can only be reached through ``folder``."""
    group_enters = bool(folder.mode & (0o010 if folder.group == permissions.group else 0o001))
    others_enter = bool(folder.mode & 0o001)
    kept = 0o700 | (0o070 if group_enters else 0) | (0o007 if others_enter else 0)
    return replace(permissions, mode=permissions.mode & kept)


def mode_for(like: Permissions, owner: str, group: str, is_dir: bool) -> int:
    """The widest mode for a file of ``owner`` and ``group`` that lets in nobody ``like`` keeps out.

    The owner of the file made its content and always keeps full access. Where owner or group
    differ from those of ``like``, its owner or its group members fall into another class here,
    so that class gets only what both classes have there.
    """
    owner_bits, group_bits, other_bits = like.mode >> 6 & 7, like.mode >> 3 & 7, like.mode & 7
    if owner != like.owner:
        group_bits &= owner_bits
        other_bits &= owner_bits
    if group != like.group:
        group_bits = other_bits = group_bits & other_bits
    mode = 0o700 | group_bits << 3 | other_bits
    return mode if is_dir else mode & 0o666
