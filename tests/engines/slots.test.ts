// Runs the suite for the slots engine with the jail that this user can open (`root` or `rootless`), and without a jail.
// As root, slots-rootless.test.ts also runs the suite with the jail of an ordinary user.
import { jailedForm } from '../../server/engines/slots/open-slots.ts';
import { describeSlots } from './slots-suite.ts';

describeSlots(jailedForm());
describeSlots('process');
