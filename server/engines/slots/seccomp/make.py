#!/usr/bin/python3
# Creates x64.bpf and arm64.bpf, the seccomp filters of boxes and helpers, with libseccomp. Run it on Debian 12 with
# python3-seccomp and golang-github-containers-common (0.50.1) installed:
#
#     /usr/bin/python3 server/engines/slots/seccomp/make.py
#
# The allowed calls are those of the default profile of Podman and Buildah, without those that need a capability. The
# differences are listed below, with reasons. Other calls return ENOSYS, so that programs fall back to older calls; the
# calls in REFUSED return EPERM.
import errno
import json
import os
import sys

import seccomp
from seccomp import ALLOW, EQ, ERRNO, MASKED_EQ, Arch, Arg, Attr, SyscallFilter

PROFILE = sys.argv[1] if len(sys.argv) > 1 else '/usr/share/containers/seccomp.json'
FOLDER = os.path.dirname(os.path.abspath(__file__))
ARCHITECTURES = {'x64': ('x86_64', 'amd64'), 'arm64': ('aarch64', 'arm64')}

# Chromium's own sandbox calls it in its own user namespace.
ALSO_ALLOWED = ['chroot']

# Allowed to containers, but not needed by any program in a jail.
REFUSED = [
    # Mounts: the jail is complete before the filter is installed.
    'mount', 'umount', 'umount2', 'pivot_root', 'move_mount', 'open_tree', 'fsopen', 'fsconfig', 'fsmount', 'fspick',
    'mount_setattr', 'setns', 'name_to_handle_at', 'open_by_handle_at', 'quotactl', 'quotactl_fd',
    # Other processes' memory and descriptors.
    'ptrace', 'process_vm_readv', 'process_vm_writev', 'process_madvise', 'pidfd_getfd', 'kcmp',
    # Large parts of the kernel with a history of vulnerabilities.
    'add_key', 'keyctl', 'request_key', 'bpf', 'perf_event_open', 'userfaultfd', 'io_uring_setup', 'io_uring_enter',
    'io_uring_register', 'fanotify_init', 'fanotify_mark', 'modify_ldt', 'vmsplice', 'remap_file_pages',
    # The machine itself.
    'kexec_load', 'kexec_file_load', 'init_module', 'finit_module', 'delete_module', 'reboot', 'swapon', 'swapoff',
    'syslog', 'acct', 'settimeofday', 'clock_settime', 'clock_adjtime', 'adjtimex', 'sethostname', 'setdomainname',
    'iopl', 'ioperm', 'vhangup', 'lookup_dcookie', 'uselib', 'ustat', 'sysfs', '_sysctl', 'nfsservctl', 'mknod', 'mknodat',
    'move_pages', 'migrate_pages', 'mbind', 'set_mempolicy', 'ioprio_set',
]
# Its flags are passed by pointer, which a filter cannot inspect. The C library falls back to clone.
ABSENT = ['clone3']

# Namespaces that Chromium's sandbox does not create: mount, cgroup, UTS, IPC, time.
NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x00000080
# UNIX, IPv4, IPv6. Of netlink only NETLINK_ROUTE, which Chromium uses to list interfaces, and NETLINK_KOBJECT_UEVENT.
FAMILIES = [1, 2, 10]
AF_NETLINK, NETLINK = 16, [0, 15]


def allowed_names(debian_name):
    with open(PROFILE, encoding='utf-8') as file:
        rules = json.load(file)['syscalls']
    for rule in rules:
        arches = (rule.get('includes') or {}).get('arches')
        caps = (rule.get('includes') or {}).get('caps')
        if rule['action'] == 'SCMP_ACT_ALLOW' and not rule.get('args') and not caps:
            if not arches or debian_name in arches:
                yield from rule['names']


def make(name, arch, debian_name):
    special = ['clone', 'unshare', 'socket', 'socketpair', 'socketcall', 'personality']
    apart = set(REFUSED) | set(ABSENT) | set(special)
    filter = SyscallFilter(ERRNO(errno.ENOSYS))
    if filter.exist_arch(Arch()):
        filter.remove_arch(Arch())
    filter.add_arch(Arch(arch))
    # Calls by another architecture's numbers (i386 on x86-64).
    filter.set_attr(Attr.ACT_BADARCH, ERRNO(errno.ENOSYS))
    # No new privileges; bubblewrap sets it anyway.
    filter.set_attr(Attr.CTL_NNP, 1)

    def rule(action, syscall, *args):
        if seccomp.resolve_syscall(Arch(arch), syscall) >= 0:
            filter.add_rule_exactly(action, syscall, *args)

    for syscall in sorted(set(allowed_names(debian_name)) | set(ALSO_ALLOWED)):
        if syscall not in apart:
            rule(ALLOW, syscall)
    for syscall in REFUSED:
        rule(ERRNO(errno.EPERM), syscall)
    for syscall in ['clone', 'unshare']:
        rule(ALLOW, syscall, Arg(0, MASKED_EQ, NAMESPACES, 0))
    for family in FAMILIES:
        rule(ALLOW, 'socket', Arg(0, EQ, family))
    for protocol in NETLINK:
        rule(ALLOW, 'socket', Arg(0, EQ, AF_NETLINK), Arg(2, EQ, protocol))
    rule(ALLOW, 'socketpair', Arg(0, EQ, 1))
    rule(ALLOW, 'personality', Arg(0, EQ, 0))
    rule(ALLOW, 'personality', Arg(0, EQ, 0xFFFFFFFF))
    with open(os.path.join(FOLDER, f'{name}.bpf'), 'wb') as file:
        filter.export_bpf(file)


for name, (arch, debian_name) in ARCHITECTURES.items():
    make(name, arch, debian_name)
