import { ConfigService } from '@nestjs/config';
import { createApp } from './create-app.js';
import type { Environment } from './environment.js';

// Administrators of this app can delete all users of the debate space: only this machine reaches it. Put a reverse proxy
// with HTTPS in front.
const HOST = '127.0.0.1';

/** The app for a real service. `start.ts` is the same with a simulator. */
const app = await createApp();
app.enableShutdownHooks(); // the shutdown delivers the last logouts
await app.listen(app.get<ConfigService<Environment, true>>(ConfigService).get('PORT'), HOST);
console.log(`The sample app: ${await app.getUrl()}/`);
