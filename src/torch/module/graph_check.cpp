// SPDX-License-Identifier: Apache-2.0
#include "graph_check.hpp"

#include <fmt/format.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <algorithm>
#include <map>

#include "operators.hpp"
#include "simplify.hpp"

namespace eigenveil {

void for_each_node(torch::jit::Block* block, const std::function<void(torch::jit::Node*)>& visit) {
  for (torch::jit::Node* node : block->nodes()) {
    visit(node);
    for (torch::jit::Block* inner : node->blocks()) for_each_node(inner, visit);
  }
}

namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// `with` calls two methods of an object, into which the inliner does not look: here they are calls like others.
bool show_contexts(Graph& graph) {
  std::vector<Node*> contexts;
  for_each_node(graph.block(), [&](Node* node) {
    const bool is_context = node->kind() == c10::prim::Enter || node->kind() == c10::prim::Exit;
    if (is_context && node->input(0)->type()->cast<c10::ClassType>()) contexts.push_back(node);
  });
  for (Node* node : contexts) {
    const char* name = node->kind() == c10::prim::Enter ? "__enter__" : "__exit__";
    const auto& method = node->input(0)->type()->expectRef<c10::ClassType>().getMethod(name);
    const torch::jit::WithInsertPoint here(node);
    std::vector<Value*> inputs = node->inputs().vec();
    // `__exit__` is told of no exception.
    while (inputs.size() < method.getSchema().arguments().size()) inputs.push_back(graph.insertConstant(c10::IValue()));
    Node* call = graph.insertNode(graph.create(c10::prim::CallMethod, inputs, 1));
    call->s_(c10::attr::name, name);
    call->output()->setType(method.getSchema().returns().at(0).type());
    if (!node->outputs().empty()) node->output()->replaceAllUsesWith(call->output());
    node->destroy();
  }
  return !contexts.empty();
}

// Everything that is called, in one graph.
std::shared_ptr<Graph> whole_graph(const torch::jit::Method& method) {
  constexpr int kDeepest = 200;
  auto graph = method.graph()->copy();
  inline_calls(*graph);
  for (int round = 0; round < kDeepest && show_contexts(*graph); ++round) inline_calls(*graph);
  return graph;
}

// Tensors, lists, dictionaries, objects, and what may hold them
bool can_be_written(const c10::TypePtr& type) {
  constexpr c10::TypeKind kPlain[] = {
      c10::TypeKind::IntType,     c10::TypeKind::FloatType,     c10::TypeKind::BoolType,
      c10::TypeKind::StringType,  c10::TypeKind::NoneType,      c10::TypeKind::NumberType,
      c10::TypeKind::ComplexType, c10::TypeKind::DeviceObjType, c10::TypeKind::FunctionType};
  return std::find(std::begin(kPlain), std::end(kPlain), type->kind()) == std::end(kPlain);
}

// The alias analysis takes for granted that nobody writes to constants. As inputs of the graph they are watched.
void make_constants_inputs(Graph& graph) {
  std::vector<Node*> constants;
  for_each_node(graph.block(), [&](Node* node) {
    if (node->kind() == c10::prim::Constant && can_be_written(node->output()->type())) constants.push_back(node);
  });
  for (Node* node : constants) {
    Value* input = graph.addInput();
    input->setType(node->output()->type());
    node->output()->replaceAllUsesWith(input);
    node->destroy();
  }
}

// Operators that may return their input itself or a view of it though their schemas do not say so: as `alias`, or as an
// element of the list that they take, they are watched.
void show_aliases(Graph& graph) {
  std::vector<Node*> silent;
  for_each_node(graph.block(), [&](Node* node) {
    if (may_return_input(node->kind().toQualString()) && node->outputs().size() == 1 && !node->inputs().empty() &&
        node->output()->type()->isSubtypeOf(*c10::TensorType::get()))
      silent.push_back(node);
  });
  for (Node* node : silent) {
    for (Value* input : node->inputs().vec()) {
      const torch::jit::WithInsertPoint here(node);
      Value* same = nullptr;
      if (input->type()->isSubtypeOf(*c10::TensorType::get()))
        same = graph.insert(c10::Symbol::fromQualString("aten::alias"), {input});
      else if (input->type()->isSubtypeOf(*c10::ListType::ofTensors()))
        same = graph.insert(c10::aten::__getitem__, {input, 0});
      if (same == nullptr) continue;
      node->output()->replaceAllUsesWith(same);
      break;
    }
    if (!node->hasUses()) node->destroy();
  }
}

// What a write may reach that outlives the call. To the analysis all values of a type that may come from outside
// (inputs, attributes, elements of either, however deep) are one, the type's wildcard: an input of the type stands for
// them.
torch::jit::ValueSet outside(Graph& graph) {
  std::map<std::string, c10::TypePtr> types;
  const auto add = [&](const Value* value) {
    if (can_be_written(value->type())) types.emplace(value->type()->repr_str(), value->type());
  };
  for_each_node(graph.block(), [&](Node* node) {
    for (const Value* value : node->inputs()) add(value);
    for (const Value* value : node->outputs()) add(value);
  });
  for (const auto& [name, type] : types) graph.addInput()->setType(type);
  return {graph.inputs().begin(), graph.inputs().end()};
}

// Text made of an object tells where in memory it is, which tells what was there before.
bool tells_addresses(const Node* node) {
  const auto kind = node->kind();
  if (kind != c10::aten::format && kind != c10::aten::str && kind != c10::aten::percentFormat) return false;
  const std::function<bool(const c10::TypePtr&)> plain = [&](const c10::TypePtr& type) {
    constexpr c10::TypeKind kPlain[] = {c10::TypeKind::IntType,    c10::TypeKind::FloatType,  c10::TypeKind::BoolType,
                                        c10::TypeKind::StringType, c10::TypeKind::NoneType,   c10::TypeKind::NumberType,
                                        c10::TypeKind::TensorType, c10::TypeKind::ComplexType};
    if (std::find(std::begin(kPlain), std::end(kPlain), type->kind()) != std::end(kPlain)) return true;
    const auto inner = type->containedTypes();
    return type->kind() != c10::TypeKind::ClassType && !inner.empty() && std::all_of(inner.begin(), inner.end(), plain);
  };
  return !std::all_of(node->inputs().begin(), node->inputs().end(), [&](const Value* v) { return plain(v->type()); });
}

bool is_made_here(const Value* object) { return object->node()->kind() == c10::prim::CreateObject; }

// Why an operator is not on the list, if it is one that people meet.
const char* reason(std::string_view name) {
  if (name == "prim::Print") return "prints";
  if (name == "aten::save") return "writes files";
  if (name == "aten::from_file") return "maps files";
  if (name == "prim::PythonOp" || name == "prim::CallMethod" || name == "prim::CallFunction" ||
      name == "prim::CallInterface" || name == "prim::Enter" || name == "prim::Exit")
    return "calls what cannot be looked into";
  if (name.starts_with("aten::empty") || name.starts_with("aten::new_empty") || name.starts_with("aten::resize"))
    return "gives memory that earlier rows may have written; take zeros instead";
  if (name == "prim::fork" || name == "aten::wait" || name.starts_with("rpc::")) return "starts threads";
  return "is not among those known to be functions of their inputs alone";
}

}  // namespace

std::string impure_operator(const torch::jit::Method& method) {
  std::string found;
  const auto graph = whole_graph(method);
  for_each_node(graph->block(), [&](Node* node) {
    const std::string name = node->kind().toQualString();
    if (found.empty() && tells_addresses(node))
      found = fmt::format("calling {} uses the operator {} on an object, which tells addresses", method.name(), name);
    if (found.empty() && !is_pure_operator(name))
      found = fmt::format("calling {} uses the operator {}, which {}", method.name(), name, reason(name));
  });
  return found;
}

std::string lasting_write(const torch::jit::Method& method) {
  const auto graph = whole_graph(method);
  make_constants_inputs(*graph);
  show_aliases(*graph);
  torch::jit::LowerSimpleTuples(graph);
  const auto lasting = outside(*graph);
  const torch::jit::AliasDb aliases(graph);
  bool norm = false;
  for_each_node(graph->block(), [&](Node* node) {
    norm = norm || node->kind() == c10::aten::batch_norm || node->kind() == c10::aten::instance_norm;
  });
  std::string found;
  for_each_node(graph->block(), [&](Node* node) {
    if (!found.empty() || !node->blocks().empty()) return;  // what is inside is visited by itself
    const bool sets = node->kind() == c10::prim::SetAttr && !is_made_here(node->input(0));
    const bool writes = node->kind() != c10::prim::SetAttr && aliases.writesToAlias(node, lasting);
    if (!sets && !writes) return;
    const std::string name = node->kind().toQualString();
    found = fmt::format(
        "calling {} changes the module itself, by the operator {}, so that a row could act on what comes after it{}",
        method.name(), name,
        norm ? ": use layer or group normalisation, or track_running_stats=False"
             : "; let it change what the call itself has made (clone, a list of its own) instead");
  });
  return found;
}

}  // namespace eigenveil
