/**
 * `npm run docs:options`. An option is written in two places, and nothing in both: its type, with its description, in the
 * TSDoc interfaces of the rooms; its form and its default in `optionsSchema`. From them this script writes the table of
 * docs/options.md, and into the interfaces each `@defaultValue` that the schema has. test/docs/docs-options.spec.ts fails as long
 * as a file is not what this script would write.
 *
 * The descriptions are not `.describe()` of the schema, because a host's editor shows the comments of the `.d.ts` only, and
 * TypeScript drops those of an inferred type when it emits it. Interfaces generated from the schema would have every
 * description twice in `src`, and the types of functions, which valibot does not know, would be written by hand all the same.
 * Hand-written interfaces also keep valibot out of the host's type check.
 */
import { writeFileSync } from 'node:fs';
import { generatedFiles } from './docs-options/generated-files.js';

for (const [file, text] of generatedFiles()) writeFileSync(new URL(file), text);
