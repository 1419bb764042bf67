// Maps the error message of a box that failed to start to advice for the operator. Each error message was seen on a
// real machine or in a real container.

const USER_NAMESPACES_CURE =
  'Allow unprivileged user namespaces: `sysctl -w user.max_user_namespaces=10000`, on Debian also `sysctl -w kernel.unprivileged_userns_clone=1`, ' +
  'on Ubuntu 24.04 and later `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` or AppArmor profiles for unshare and bwrap. ' +
  'In a container, use a seccomp profile that allows clone, unshare, mount, umount2, pivot_root, chroot, setns and sethostname.';
const SECCOMP_PROFILE_CURE =
  'The container forbids it. Use a seccomp profile that allows clone, unshare, mount, umount2, pivot_root, chroot, setns and sethostname.';
const UNMASKED_PROC_CURE =
  'The container masks /proc. Run it with --security-opt systempaths=unconfined (Docker), --security-opt unmask=ALL (Podman), or procMount: Unmasked with hostUsers: false (Kubernetes).';
const ORDINARY_USER_CURE =
  'Root without its capabilities cannot create boxes. Run the server as an ordinary user (in a container --user 1000:1000), or with all capabilities of root.';

const CURES: readonly (readonly [RegExp, string])[] = [
  [/Can't mount proc/, UNMASKED_PROC_CURE],
  [/pivot_root|Can't set hostname|sys_chroot/, SECCOMP_PROFILE_CURE],
  [/RTNETLINK answers: Operation not permitted|setpriv: |setting up uid map/, ORDINARY_USER_CURE],
  [
    /unshare failed|No permissions to create|Creating new namespace failed|No usable sandbox|chrome:\/\/sandbox reports/,
    USER_NAMESPACES_CURE,
  ],
  [
    /error while loading shared libraries/,
    'Libraries of Chromium are missing: install the chromium package of this system.',
  ],
];

const DEFAULT_CURE = 'Run `berth doctor` and fix what it reports.';

export const cureFor = (why: string): string => CURES.find(([message]) => message.test(why))?.[1] ?? DEFAULT_CURE;

export const cureForUserNamespaces = USER_NAMESPACES_CURE;
