import { ConsoleLogger } from '@nestjs/common';

/** Nest lists each module and route at every start, and prints the error that `createApp` throws, with its stack. */
const QUIET = ['InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'ExceptionHandler'];

/** Nest's logger without these lists, and without an error that is printed twice. */
export class QuietLogger extends ConsoleLogger {
  override log(message: unknown, ...optional: unknown[]): void {
    if (!isQuiet(optional)) super.log(message, ...optional);
  }

  override error(message: unknown, ...optional: unknown[]): void {
    if (!isQuiet(optional)) super.error(message, ...optional);
  }
}

/** Nest passes the context last. */
function isQuiet(optional: readonly unknown[]): boolean {
  const context = optional.at(-1);
  return typeof context === 'string' && QUIET.includes(context);
}
