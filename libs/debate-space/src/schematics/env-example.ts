import type { Tree } from '@angular-devkit/schematics';
import { overwrite } from './overwrite.js';

const FILE = '.env.example';

/** The values with which `npx debate-space-simulator` starts: they protect nothing. */
const DEMO_VALUES = {
  DEBATE_SPACE_API_KEY: 'demo-api-key',
  DEBATE_SPACE_SECRET_KEY: 'demo-secret-key-that-protects-nothing-at-all',
  DEBATE_SPACE_APPLICATION_NAME: 'demo',
  DEBATE_SPACE_AUTH_URL: 'http://127.0.0.1:4010',
};

/** Appends the variables that `.env.example` lacks. */
export function addEnvExample(tree: Tree): string[] {
  const content = tree.exists(FILE) ? tree.readText(FILE) : '';
  const lines = Object.entries(DEMO_VALUES)
    .filter(([name]) => !new RegExp(`^${name}=`, 'm').test(content))
    .map(([name, value]) => `${name}=${value}\n`);
  if (lines.length > 0) {
    const separator = content === '' ? '' : `${content.trimEnd()}\n\n`;
    const text = `${separator}# The debate space. These are the demo values of: npx debate-space-simulator\n${lines.join('')}`;
    if (tree.exists(FILE)) overwrite(tree, FILE, text);
    else tree.create(FILE, text);
  }
  return [
    `Copy the DEBATE_SPACE_ variables of ${FILE} to .env. Tests that import your AppModule need them, too.`,
    'In production, take API key and secret key from the administration panel, Configuration > General.',
  ];
}
