import { expect, it } from '@jest/globals';
import { Logger, type INestApplication } from '@nestjs/common';
import { DEMO_CREDENTIALS } from 'debate-space-simulator';
import { readdirSync } from 'node:fs';
import { logInTo } from '#support/browser/browser.js';
import { scenario } from '#support/hosts/scenario.js';
import { neverCloseIdle } from '#support/service/never-close-idle.js';

const scene = scenario(DEMO_CREDENTIALS);
const examples = readdirSync(new URL('../../docs/examples/', import.meta.url));

it.each(examples.filter((name) => name.startsWith('minimal')))(
  'docs/examples/%s logs a user in, and logs the user out of the debate space',
  async (name) => {
    Logger.overrideLogger(false);
    Object.assign(process.env, {
      DEBATE_SPACE_API_KEY: DEMO_CREDENTIALS.apiKey,
      DEBATE_SPACE_SECRET_KEY: DEMO_CREDENTIALS.secretKey,
      DEBATE_SPACE_AUTH_URL: scene.service.url,
      SESSION_SECRET: 'a session secret of at least 32 characters',
      PORT: '0',
    });
    const example = import(`../../docs/examples/${name}/main.js`) as Promise<{ app: INestApplication }>;
    const app = await scene.apps.add(example.then((main) => main.app));
    neverCloseIdle(app);

    scene.service.debate.signIn('alice');
    const browser = await logInTo({ url: await app.getUrl() }, 'alice');
    expect(await browser.get('/whoami')).toBe('alice');
    await browser.post('/logout');
    await scene.service.received.waitFor('logout', { timeoutMs: 60_000 });
    expect(scene.service.received.logouts).toEqual(['alice']);
    expect(scene.service.debate.isSignedIn('alice')).toBe(false);
  },
);
