// The protections that a form of isolation lacks on this machine, as sentences for the operator.
import type { Controller } from './cgroups.ts';
import type { Form } from './slots.ts';

const CGROUP_WARNINGS: Record<Exclude<Form, 'process'>, Record<Controller, string>> = {
  root: {
    memory: 'No memory cgroup: memory is bounded per process of a session, not per session.',
    pids: 'No pids cgroup: the number of processes is bounded per user id of a slot instead.',
    cpu: 'No cpu cgroup: one session can take the processor time of the others.',
  },
  rootless: {
    memory:
      'No memory cgroup: memory is bounded per process of a session, not per session. Delegate a cgroup to this user (systemd: Delegate=yes) to bound it.',
    pids: 'No pids cgroup: the number of processes is bounded per user namespace of a session instead.',
    cpu: 'No cpu cgroup: one session can take the processor time of the others. Delegate a cgroup to this user (systemd: Delegate=yes) to bound it.',
  },
};

const SHARED_USER_WARNING =
  'All sessions run as the user of this server: only namespaces separate them. Start the server as root to give each session its own user id.';

export const UNJAILED_WARNINGS: readonly string[] = [
  "No jail: a browser's client can read and write every file of this server's user, including other sessions' files.",
  "No network namespace: a browser's client can reach this machine's loopback, private networks and cloud metadata, past the egress proxy.",
  'No process separation: a compromised browser can see and signal other processes of this user.',
  'No jail for ffmpeg, which decodes untrusted pictures: it runs as the user of this server, with limits on memory and processor time only.',
  "Chromium's own sandbox is off when the server runs as root.",
];

const OFFLINE_WARNING =
  'No interface of kind dummy, ifb or veth in this kernel: `navigator.onLine` is false in every page. Load one of these modules.';

export function missingFeatures(
  form: Form,
  missingControllers: readonly Controller[],
  hasLink: boolean,
): readonly string[] {
  if (form === 'process') return UNJAILED_WARNINGS;
  const cgroupWarnings = missingControllers.map(controller => CGROUP_WARNINGS[form][controller]);
  return [
    ...(form === 'rootless' ? [SHARED_USER_WARNING] : []),
    ...cgroupWarnings,
    ...(hasLink ? [] : [OFFLINE_WARNING]),
  ];
}
