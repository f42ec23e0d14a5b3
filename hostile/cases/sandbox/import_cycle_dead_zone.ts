// expect: ERUNTIME
import { second } from './import_cycle_dead_zone_other.ts';
export const first = second + 1;
export default () => first;
// file: import_cycle_dead_zone_other.ts
import { first } from './import_cycle_dead_zone.ts';
export const second = first + 1;
