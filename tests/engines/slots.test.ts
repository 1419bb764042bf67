// Runs the suite for the slots engine with the kind of jail that this user can open, and without a jail. As root,
// slots-rootless.test.ts adds the third kind.
import { jailedForm } from '../../server/engines/slots/open-slots.ts';
import { slotsSuite } from './slots-suite.ts';

slotsSuite(jailedForm());
slotsSuite('process');
