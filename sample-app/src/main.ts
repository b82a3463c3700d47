import { once } from 'node:events';
import { ConfigService } from '@nestjs/config';
import { createApp } from './create-app.js';
import { listening, portFrom } from './port.js';
import { runProgram } from './run-program.js';

/** The app for a real service, until SIGINT or SIGTERM; `start.ts` is the same with a simulator beside it. */
async function main(): Promise<void> {
  // Without it, a page that is kept up to date by server-sent events would hold up the shutdown.
  const app = await createApp({ forceCloseConnections: true });
  try {
    const port = portFrom('PORT', 3000);
    // Administrators of this app can delete all users: it is for this machine alone, unless the environment says otherwise.
    const host = app.get(ConfigService).get<string>('HOST') ?? '';
    await listening('PORT', port, () => app.listen(port, host === '' ? '127.0.0.1' : host));
    console.log(`The sample app:    ${await app.getUrl()}/`);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  } finally {
    await app.close(); // returns when the logouts that are under way have reached the service
  }
}

await runProgram(main);
