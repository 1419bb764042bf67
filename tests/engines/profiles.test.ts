// Runs the suite for profiles with the jail that this user can open (`root` or `rootless`), and without a jail. As
// root, slots-rootless.test.ts also runs the suite with the jail of an ordinary user.
import { jailedForm } from '../../server/engines/slots/open-slots.ts';
import { describeProfiles } from './profiles-suite.ts';

describeProfiles(jailedForm());
describeProfiles('process');
