import type { OptionProblem } from 'nestjs-debate-space';

/** What the command line is configured with, and the variable that says it. */
export const variables = {
  apiKey: 'DEBATE_SPACE_API_KEY',
  secretKey: 'DEBATE_SPACE_SECRET_KEY',
  applicationName: 'DEBATE_SPACE_APPLICATION_NAME',
  authUrl: 'DEBATE_SPACE_AUTH_URL',
  baseUrl: 'DEBATE_SPACE_BASE_URL',
  secretKeyEncoding: 'DEBATE_SPACE_SECRET_KEY_ENCODING',
  storage: 'DEBATE_SPACE_STORAGE',
  storageSchema: 'DEBATE_SPACE_STORAGE_SCHEMA',
  storagePrefix: 'DEBATE_SPACE_STORAGE_PREFIX',
  storageKey: 'DEBATE_SPACE_STORAGE_KEY',
  rateLimit: 'DEBATE_SPACE_RATE_LIMIT',
  listAuth: 'DEBATE_SPACE_LIST_AUTH',
  allowInsecureHttp: 'DEBATE_SPACE_ALLOW_INSECURE_HTTP',
} as const;

const byOption: Readonly<Record<string, string>> = {
  ...variables,
  storage: 'storage', // also a word of the sentences
  'http.allowInsecureHttp': variables.allowInsecureHttp,
  'users.listAuth': variables.listAuth,
};

/** A problem as the plugin words it, with the variables in place of its options. */
export function inVariables({ option, problem, hint }: OptionProblem): OptionProblem {
  return { option: textInVariables(option), problem: textInVariables(problem), hint: textInVariables(hint) };
}

/** What the plugin says, for people who have no code of the app at hand: with the variables in place of its options. */
export function textInVariables(text: string): string {
  return text.replaceAll(/(?:http\.|users\.)?\b[a-z]\w+\b/g, (word) => byOption[word] ?? word);
}
