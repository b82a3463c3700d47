import { readFileSync } from 'node:fs';
import ts from 'typescript';

/** The library's folder of sources. */
const sources = new URL('../../libs/debate-space/src/', import.meta.url);

/** One option as its type has it. */
export interface OptionProperty {
  /** Such as `http.timeoutMs`. */
  readonly path: string;
  readonly file: URL;
  readonly node: ts.PropertySignature;
}

/** The options of `DebateSpaceModuleOptions` and of its groups, in the order of the types. */
export function optionProperties(): OptionProperty[] {
  const interfaces = new Map<string, { file: URL; node: ts.InterfaceDeclaration }>();
  const read = (file: URL): void => {
    const source = ts.createSourceFile(file.href, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
    source.forEachChild((node) => {
      if (ts.isInterfaceDeclaration(node)) interfaces.set(node.name.text, { file, node });
    });
    for (const { fileName } of ts.preProcessFile(source.text).importedFiles)
      if (fileName.endsWith('-options.js')) read(new URL(fileName.replace(/js$/, 'ts'), file));
  };
  read(new URL('module/module-options.ts', sources));
  const propertiesOf = (name: string, prefix: string): OptionProperty[] => {
    const { file, node: declaration } = interfaces.get(name) ?? {};
    if (!file || !declaration) throw new Error(`there is no interface ${name}`);
    return declaration.members.filter(ts.isPropertySignature).flatMap((node) => {
      const path = prefix + node.name.getText();
      const type = typeOf(node).replace(/<\w+>$/, ''); // of a group with a type parameter
      return interfaces.has(type) ? propertiesOf(type, `${path}.`) : [{ path, file, node }];
    });
  };
  return propertiesOf('DebateSpaceModuleOptions', '');
}

/** As it is written, without what only says that the option may be left out. */
export function typeOf(node: ts.PropertySignature): string {
  return (node.type?.getText() ?? '').replace(/ \| undefined$/, '');
}

/** The comment of an option, in one line. */
export function descriptionOf(node: ts.PropertySignature): string {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return inOneLine(comment?.comment);
}

export function defaultTagOf(node: ts.PropertySignature): ts.JSDocTag | undefined {
  return ts.getJSDocTags(node).find(({ tagName }) => tagName.text === 'defaultValue');
}

export function inOneLine(comment: ts.JSDoc['comment']): string {
  return (ts.getTextOfJSDocComment(comment) ?? '').replaceAll(/\s+/g, ' ');
}
