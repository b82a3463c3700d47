import type { Tree } from '@angular-devkit/schematics';
import { MetadataManager, ModuleImportDeclarator } from '@nestjs/schematics';
import { overwrite } from './overwrite.js';

/** `imports` comes out of a variable, by `{ imports }` or `{ ...metadata }`: a property of ours would replace it. */
const HIDDEN_IMPORTS = /@Module\(\s*\{(?![^)]*\bimports['"]?\s*:)[^)]*(\.\.\.|\bimports\b)/;
const CONFIG_IMPORT = 'ConfigModule.forRoot(),\n    ';

/** The import of docs/getting-started.md. */
const DEBATE_SPACE_IMPORT = `DebateSpaceModule.forRootAsync({
      imports: [ConfigModule],
      inject: [ConfigService],
      useFactory: (config: ConfigService) => ({
        apiKey: config.getOrThrow<string>('DEBATE_SPACE_API_KEY'),
        secretKey: config.getOrThrow<string>('DEBATE_SPACE_SECRET_KEY'),
        applicationName: config.getOrThrow<string>('DEBATE_SPACE_APPLICATION_NAME'),
        authUrl: config.getOrThrow<string>('DEBATE_SPACE_AUTH_URL'),
      }),
    })`;

/** Imports DebateSpaceModule, and ConfigModule where the module has none. */
export function importDebateSpaceModule(tree: Tree, file: string): string[] {
  const byHand = [
    `Import DebateSpaceModule in your root module, as docs/getting-started.md of nestjs-debate-space shows.`,
  ];
  if (!tree.exists(file)) return byHand;
  const content = tree.readText(file).replaceAll('\r\n', '\n');
  if (importsSymbol(content, 'DebateSpaceModule')) return [];
  if (HIDDEN_IMPORTS.test(content)) return byHand;
  const modules = `${importsSymbol(content, 'ConfigModule') ? '' : CONFIG_IMPORT}${DEBATE_SPACE_IMPORT}`;
  const edited = new MetadataManager(content).insert('imports', modules);
  if (edited === undefined || edited === content) return byHand;
  const multiline = edited.replace(`[${modules}]`, () => `[\n    ${modules},\n  ]`);
  const missing = ['ConfigModule', 'ConfigService'].filter((name) => !importsSymbol(content, name));
  const withConfig =
    missing.length > 0 ? declare(multiline, missing.join(', '), '@nestjs/config') : multiline;
  overwrite(tree, file, declare(withConfig, 'DebateSpaceModule', 'nestjs-debate-space'));
  return [];
}

/** In an import, up to the name of its package; a comment may name the symbol, too. */
function importsSymbol(content: string, symbol: string): boolean {
  return new RegExp(`^import\\s[^'"]*\\b${symbol}\\b`, 'm').test(content);
}

function declare(content: string, symbol: string, packageName: string): string {
  const imports = new ModuleImportDeclarator({ relative: () => packageName });
  type Options = Parameters<typeof imports.declare>[1];
  const nowhere = '' as Options['path'];
  return imports.declare(content, {
    symbol,
    name: packageName,
    metadata: 'imports',
    path: nowhere,
    module: nowhere,
  });
}
