import { OperatorError } from '../operator-error';

/** The database is not one that these migrations can or may be applied to. The message names the cause and the repair. */
export class MigrationRefused extends OperatorError {
  override readonly name = 'MigrationRefused';
}
