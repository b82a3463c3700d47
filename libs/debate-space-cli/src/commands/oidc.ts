import type { Command } from 'commander';
import { commandContext, refuse, type CliContext } from '../cli-context.js';
import { logoutRoute } from '../doctor/application-name.js';
import { serviceAddress } from '../doctor/address.js';
import { addExamples } from '../examples.js';
import { variables } from '../variables.js';

/** All that the URL is made of. */
const NEEDED: ReadonlySet<string> = new Set([variables.applicationName, variables.authUrl]);

/** Says what an identity provider has to know. Requests nothing. */
export function addOidc(program: Command, cli: CliContext): void {
  const command = program
    .command('oidc')
    .description('the URL to register at your identity provider; requests nothing')
    .action(async (_: object, invoked: Command) => {
      const { settings, output } = await commandContext(invoked, cli);
      const missing = settings.problems.filter(({ option }) => NEEDED.has(option));
      const address = serviceAddress(settings);
      if (missing.length > 0) refuse(missing);
      if (address === undefined)
        refuse([
          { option: variables.authUrl, problem: 'must be a URL', hint: 'such as https://debate.example.org' },
        ]);
      const { url } = logoutRoute(address.authUrl, settings.applicationName ?? '');
      output.answer({ backchannelLogoutUrl: url }, textOf(url));
    });
  addExamples(command, 'oidc', 'oidc --json');
}

function textOf(url: string): string {
  return `backchannel logout URL: ${url}

1. Register it at your identity provider, for the client by which the debate space logs its users in.
2. Give the issuer URL of the identity provider to the operator of the service.
3. Set logout: { mode: 'oidc' } in your app.
The sub of the identity provider must be the uid in the debate space.`;
}
