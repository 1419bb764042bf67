// The slots engine in the form that this user has here, and without a jail. As root, slots-rootless.test.ts adds the third.
import { jailedForm } from '../../server/engines/slots/open-slots.ts';
import { slotsSuite } from './slots-suite.ts';

slotsSuite(jailedForm());
slotsSuite('process');
