import type { Rule } from '@angular-devkit/schematics';
import { importDebateSpaceModule } from './app-module.js';
import { requireConfigPackage } from './config-package.js';
import { addEnvExample } from './env-example.js';
import { transformEsmPackages } from './jest-config.js';

/** What `nest add` passes. */
interface NestAddOptions {
  /** The folder of `app.module.ts`. Default: `src`. */
  readonly sourceRoot?: string | undefined;
}

/**
 * `nest add nestjs-debate-space`: the installation steps of docs/getting-started.md. Each step changes nothing where it is
 * already done, and returns what is left for the developer.
 *
 * @internal
 */
export function nestAdd({ sourceRoot = 'src' }: NestAddOptions): Rule {
  return (tree, context) => {
    const remaining = [
      ...requireConfigPackage(tree, context),
      ...importDebateSpaceModule(tree, `${sourceRoot}/app.module.ts`),
      ...addEnvExample(tree),
      ...transformEsmPackages(tree, [
        'package.json',
        'jest.config.json',
        'test/jest-e2e.json',
        `${sourceRoot}/../test/jest-e2e.json`,
      ]),
      'See that it works, with one login and one logout: node_modules/nestjs-debate-space/docs/getting-started.md.',
    ];
    context.logger.info('DebateSpaceModule is added. What is left to do:');
    for (const [index, step] of remaining.entries()) context.logger.info(`${index + 1}. ${step}`);
  };
}
