// Profiles packed and unpacked in the form that this user has here, and without a jail. As root, slots-rootless.test.ts
// adds the third.
import { jailedForm } from '../../server/engines/slots/open-slots.ts';
import { profilesSuite } from './profiles-suite.ts';

profilesSuite(jailedForm());
profilesSuite('process');
