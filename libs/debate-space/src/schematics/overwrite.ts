import type { Tree } from '@angular-devkit/schematics';

/** Overwrites a file, with the line ends that it has. */
export function overwrite(tree: Tree, file: string, text: string): void {
  const lineEnd = tree.readText(file).includes('\r\n') ? '\r\n' : '\n';
  tree.overwrite(file, text.replaceAll(/\r?\n/g, lineEnd));
}

/** Overwrites a JSON file, with the indentation and the line ends that it has. */
export function overwriteJson(tree: Tree, file: string, content: object): void {
  const before = tree.readText(file);
  const [indentation = '  '] = /^[ \t]+/m.exec(before) ?? [];
  overwrite(tree, file, `${JSON.stringify(content, null, indentation)}${before.endsWith('\n') ? '\n' : ''}`);
}
