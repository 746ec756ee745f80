import type { Level } from '../policy';
import type { RefuseSetting } from './policy-settings';

/**
 * The level that a definition names; UNKNOWN where it names none.
 *
 * @param refuse is told of a name that is no level: what reads protos without checking them lets a misspelt one pass
 */
export function levelNamed(name: unknown, refuse: RefuseSetting): Level {
  switch (name) {
    case 'NO_SIDE_EFFECTS':
    case 'IDEMPOTENT':
      return name;
    case undefined:
    case 'IDEMPOTENCY_UNKNOWN':
      return 'UNKNOWN';
    default:
      refuse('idempotency_level', `NO_SIDE_EFFECTS, IDEMPOTENT or IDEMPOTENCY_UNKNOWN; got ${String(name)}`);
      return 'UNKNOWN';
  }
}
