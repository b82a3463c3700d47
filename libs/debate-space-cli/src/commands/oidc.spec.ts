import { describe, expect, it } from '@jest/globals';
import { keys, run } from '../testing/command-line.js';

const env = {
  ...keys,
  DEBATE_SPACE_APPLICATION_NAME: 'town hall',
  DEBATE_SPACE_AUTH_URL: 'https://debate.example.org/',
};
const URL_TO_REGISTER = 'https://debate.example.org/auth/logout/town%20hall';

describe('oidc', () => {
  it('prints the URL to register at the identity provider', async () => {
    const { code, out, err } = await run('oidc', { env });
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain(`backchannel logout URL: ${URL_TO_REGISTER}\n`);
    expect(out).toContain("logout: { mode: 'oidc' }");
  });

  it('answers as JSON', async () => {
    const { code, out } = await run('oidc --json', { env });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ backchannelLogoutUrl: URL_TO_REGISTER });
  });

  it('needs no key and no storage', async () => {
    const { DEBATE_SPACE_APPLICATION_NAME, DEBATE_SPACE_AUTH_URL } = env;
    const needed = { DEBATE_SPACE_APPLICATION_NAME, DEBATE_SPACE_AUTH_URL };
    const { code } = await run('oidc', { env: { ...needed, DEBATE_SPACE_STORAGE: 'redis://127.0.0.1:1' } });
    expect(code).toBe(0);
  });

  it.each([
    [
      'no application name',
      { DEBATE_SPACE_APPLICATION_NAME: '' },
      'DEBATE_SPACE_APPLICATION_NAME is not set',
    ],
    ['no address', { DEBATE_SPACE_AUTH_URL: '' }, 'DEBATE_SPACE_AUTH_URL is not set'],
    ['what is no address', { DEBATE_SPACE_AUTH_URL: 'debate' }, 'DEBATE_SPACE_AUTH_URL must be a URL'],
  ])('ends with 3 when there is %s', async (_what, more, problem) => {
    const { code, err } = await run('oidc', { env: { ...env, ...more } });
    expect(code).toBe(3);
    expect(err).toContain(problem);
  });
});
