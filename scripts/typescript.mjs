// For `node --import`: runs TypeScript in this process and in those that it forks, without a build. Node.js 20 cannot.
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
