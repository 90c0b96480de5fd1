"""POSIX permissions: computes file modes that let only readers of a table read its indexes.

An index contains keys of its table, and must not reveal them to users who cannot read the table.
POSIX and HDFS have three classes of users: owner, group and other. A user has the permissions of
the first class to which the user belongs. To reach a file, a user needs the execute bit of every
folder above the file. Example: the folder of a table has the mode ``rwxr-x---`` and the group
``sales``. If the index's folder also has the group ``sales``, it gets the mode 0o750. With any
other group, the index's folder gets the mode 0o700.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sieve.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Permissions:
    """The owner, the group and the nine permission bits of a file or folder.

    Attributes:
        owner: the name of the owner, or the decimal uid if the host has no name for the uid.
        group: the name of the group, or the decimal gid if the host has no name for the gid.
        mode: the bits ``rwxrwxrwx``, 0 to 0o777.
    """

    owner: str
    group: str
    mode: int


def without_acl(permissions: Permissions) -> Permissions:
    """Returns the permissions that a file with an access control list (ACL) certainly grants.

    If a file has an ACL, only the owner bits are certain. The group bits are the ACL's mask instead
    of the group's permissions, and the ACL can deny access to a named user. If an index copied the
    group and other bits, the index could give access to the wrong users.
    """
    return replace(permissions, mode=permissions.mode & 0o700)


def behind(permissions: Permissions, folder: Permissions) -> Permissions:
    """Returns a file's effective permissions, given its own permissions and its folder's."""
    group_enters = bool(folder.mode & (0o010 if folder.group == permissions.group else 0o001))
    others_enter = bool(folder.mode & 0o001)
    kept = 0o700 | (0o070 if group_enters else 0) | (0o007 if others_enter else 0)
    return replace(permissions, mode=permissions.mode & kept)


def mode_for(like: Permissions, owner: str, group: str, is_dir: bool) -> int:
    """Returns the widest mode of a file that excludes all users whom ``like`` excludes.

    The file belongs to ``owner`` and ``group``. The file's owner created its content, so the owner
    always has full access. If ``like`` has another owner or group, some users are in one class for
    the file and in another class for ``like``. A user in two different classes gets only the bits
    that both classes have in ``like``.
    """
    owner_bits, group_bits, other_bits = like.mode >> 6 & 7, like.mode >> 3 & 7, like.mode & 7
    if owner != like.owner:
        group_bits &= owner_bits
        other_bits &= owner_bits
    if group != like.group:
        group_bits = other_bits = group_bits & other_bits
    mode = 0o700 | group_bits << 3 | other_bits
    return mode if is_dir else mode & 0o666


def checked(now: Permissions, mode: int, uri: str) -> Permissions:
    """Returns ``now``, a file's permissions; raises UnsupportedError if they exceed ``mode``."""
    if now.mode & ~mode:
        raise UnsupportedError(
            "SIEVE_STORE_PERMISSIONS",
            f"{uri} keeps mode {now.mode:o} instead of {mode:o}: its file system does not take "
            "permissions; set spark.sieve.path to a folder on one that does",
        )
    return now
