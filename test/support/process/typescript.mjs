// For `node --import`: like scripts/typescript.mjs, with the sources of the packages instead of what is built of them.
import { register } from 'node:module';
import '../../../scripts/typescript.mjs';

register('./package-sources.mjs', import.meta.url);
