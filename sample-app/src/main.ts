import { createApp } from './create-app.js';

// The app for a real service; `start.ts` is the same with a simulator beside it.
// Without it, a page that is kept up to date by server-sent events would hold up the shutdown.
const app = await createApp({ forceCloseConnections: true });
// Ends the process only when the logouts that are under way have reached the service.
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000);
