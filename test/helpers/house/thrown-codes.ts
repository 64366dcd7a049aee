/** Finds the error codes in the product's sources, so that a test can compare them with the reference. */
import ts from 'typescript';

const KEBAB = /^[a-z]+(-[a-z]+)*$/;
/** Error classes and functions that make errors. The first argument is a code, or an object with the member `code`. */
const MAKERS = /^(LockgateError|RequestFaults|Refusal|OverBudget|GatewayRefusal|problem|faultAt|super)$/;
/** Constants that hold a code. */
const CODE_CONSTANT = /_CODE$/;
/** The function that makes OAuth's errors. Its argument has underscores, as OAuth demands; the code has dashes. */
const OAUTH_MAKER = 'oauthRefusal';

/** The codes of the errors that a source file makes, in the order of the file. */
export function thrownCodes(path: string, text: string): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    found.push(...codesAt(node));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found.filter((code) => KEBAB.test(code));
}

function codesAt(node: ts.Node): string[] {
  if (ts.isNewExpression(node) || ts.isCallExpression(node)) {
    const [first] = node.arguments ?? [];
    const name = node.expression.getText();
    if (first === undefined) return [];
    if (name === OAUTH_MAKER) return textsOf(first).map((text) => text.replaceAll('_', '-'));
    if (MAKERS.test(name)) return ts.isObjectLiteralExpression(first) ? memberCode(first) : textsOf(first);
  }
  // An error that is a value, such as what is wrong with a line of a trace.
  if (ts.isObjectLiteralExpression(node) && node.properties.some((member) => member.name?.getText() === 'message'))
    return memberCode(node);
  if (ts.isVariableDeclaration(node) && CODE_CONSTANT.test(node.name.getText()) && node.initializer !== undefined)
    return textsOf(node.initializer);
  return [];
}

/** The texts that an expression may be: a literal, or both sides of a choice. */
function textsOf(node: ts.Expression): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  return ts.isConditionalExpression(node) ? [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)] : [];
}

/** The member `code` of an object. */
function memberCode(object: ts.ObjectLiteralExpression): string[] {
  return object.properties.flatMap((member) =>
    ts.isPropertyAssignment(member) && member.name.getText() === 'code' ? textsOf(member.initializer) : [],
  );
}
