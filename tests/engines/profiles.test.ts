// Runs the suite for profiles with the kind of slots that this user can open, and without a jail. As root,
// slots-rootless.test.ts adds the third kind.
import { jailedForm } from '../../server/engines/slots/open-slots.ts';
import { profilesSuite } from './profiles-suite.ts';

profilesSuite(jailedForm());
profilesSuite('process');
