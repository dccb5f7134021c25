import { askedBy, leftBy } from "../protocol/rules.js";
import { conditionIn, itemKey, nameIn, storedValue, TYPES } from "./compile.js";
import { statementFailure } from "./failures.js";
export function statementOf(layout, renewal) {
    const effect = leftBy(renewal);
    if (effect.kind !== "update")
        throw new TypeError(`A renewal leaves an update, not a ${effect.kind}`);
    const parameters = [];
    const parameter = (value) => {
        parameters.push(value);
        return "?";
    };
    const wordOf = (attribute) => quoted(nameIn(layout, attribute));
    const set = Object.entries(effect.set).flatMap(([attribute, value]) => value === undefined ? [] : [`SET ${wordOf(attribute)} = ${parameter(storedValue(value))}`]);
    const remove = effect.remove.map((attribute) => `REMOVE ${wordOf(attribute)}`);
    const key = Object.entries(itemKey(layout, renewal.at)).map(([name, value]) => `${quoted(name)} = ${parameter(value)}`);
    const { condition, values } = askedBy(renewal);
    const held = conditionIn(condition, {
        wordOf,
        isMissing: (word) => `${word} IS MISSING`,
        hasType: (word, type) => `attribute_type(${word}, '${TYPES[type].S}')`,
        literal: (_name, value) => parameter(storedValue(value)),
        named: (value) => parameter(storedValue(values[value])),
    });
    const where = [...key, `(${held})`].join(" AND ");
    return {
        Statement: `UPDATE ${quoted(layout.tableName)} ${[...set, ...remove].join(" ")} WHERE ${where} RETURNING ALL OLD *`,
        Parameters: parameters,
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
}
export function statedBy(response, tableName) {
    if (response === undefined)
        return { kind: "failed", error: statementFailure({}, tableName) };
    const { Error: error, Item: item } = response;
    if (error === undefined)
        return { kind: "applied", item };
    if (error.Code === "ConditionalCheckFailed")
        return { kind: "refused", item: error.Item };
    return { kind: "failed", error: statementFailure(error, tableName) };
}
const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
