// For `node --import`: runs the TypeScript sources of this workspace in a process of their own, without a build.
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
