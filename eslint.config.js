import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

/**
 * The rooms of the library from the top to the ground (docs/architecture.md): a file imports from its own room and from
 * those below it, so that no folder is in a cycle. `schematics` is a program of its own; the files beside the rooms are the
 * entry points and the ground that all rooms stand on.
 */
const ROOMS = [
  'module',
  'api',
  'live-sessions',
  'erasure',
  'logout',
  'service',
  'options',
  'secrets',
  'jobs',
  'storage',
  'async',
];
/** The folders within some rooms, from the top; below them are the files of the room's root. */
const FOLDERS = {
  service: ['calls', 'http'],
};
const library = 'libs/debate-space/src';
/** These know nothing of the other rooms, so that each can be read and tested alone. */
const OWN = {
  'libs/debate-space/src/session-end/**/*.ts': ['../*', '!../async', '!../events.js', '!../uid-rule.js'],
};

function downwardImports(files, roomsAbove) {
  const group = roomsAbove.map((room) => `**/${room}/**`);
  const message = 'Import from rooms below only; see docs/architecture.md.';
  return {
    files,
    ignores: ['**/*.spec.ts'],
    rules: { 'no-restricted-imports': ['error', { patterns: [{ group, message }] }] },
  };
}

export default tseslint.config(
  { ignores: ['**/dist/', '**/build/', '**/coverage/'] },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Nest types its option objects as classes.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      // Nest modules are classes without members.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  // Compiled where their libraries are, by `npm run check:recipes`.
  { files: ['scripts/check-recipes/*.ts'], ...tseslint.configs.disableTypeChecked },
  ...ROOMS.slice(1).map((room, n) => downwardImports([`${library}/${room}/**/*.ts`], ROOMS.slice(0, n + 1))),
  downwardImports([`${library}/{errors,events,uid}.ts`], ROOMS),
  ...Object.entries(OWN).map(([files, group]) => ({
    files: [files],
    ignores: ['**/*.spec.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ group, message: 'This room knows nothing of the others.' }] },
      ],
    },
  })),
  // A rule is replaced by the next one for the same file: each names the rooms above as well.
  ...Object.entries(FOLDERS).flatMap(([room, folders]) =>
    [...folders, '*.ts'].map((folder, n) =>
      downwardImports(
        [`${library}/${room}/${folder === '*.ts' ? folder : `${folder}/**/*.ts`}`],
        [...ROOMS.slice(0, ROOMS.indexOf(room)), ...folders.slice(0, n)],
      ),
    ),
  ),
  {
    files: [`${library}/**/*.ts`],
    ignores: ['**/*.spec.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'MetaProperty[meta.name="import"]', message: 'import.meta fails in jest with CommonJS.' },
      ],
    },
  },
  {
    files: ['**/*.{mjs,cjs}', '**/*.js'],
    languageOptions: {
      globals: { process: 'readonly', console: 'readonly', URL: 'readonly', fetch: 'readonly' },
    },
  },
);
