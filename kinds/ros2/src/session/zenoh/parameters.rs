//! The parameters of the node over Zenoh: six services, and changes published at
//! `/parameter_events`. Over DDS, ros2-client does this.

use std::collections::BTreeSet;
use std::sync::Arc;

use ros2_client::builtin_interfaces::Time;
use ros2_client::parameters::{ParameterDescriptor, ParameterValue, raw};
use ros2_client::qos::{History, QosProfile};
use ros2_client::rcl_interfaces::{
    DescribeParametersRequest, DescribeParametersResponse, GetParameterTypesRequest,
    GetParameterTypesResponse, GetParametersRequest, GetParametersResponse, ListParametersRequest,
    ListParametersResponse, ListParametersResult, SetParametersAtomicallyResponse,
    SetParametersRequest, SetParametersResponse,
};
use sinew_core::Fault;

use super::Zenoh;
use super::ends::{ZenohService, ZenohWriter};
use super::wire::Subject;
use crate::session::name_of;
use crate::values::Values;

/// Depth of these services and of the events: that of rclcpp, which other nodes of ROS announce,
/// too.
const DEPTH: usize = 1000;
const PACKAGE: &str = "rcl_interfaces";
/// The hash of `rcl_interfaces/msg/ParameterEvent`.
pub(super) const EVENT: &str =
    "RIHS01_043e627780fcad87a22d225bc2a037361dba713fca6a6b9f4b869a5aa0393204";

/// The services: name, type and the type's hash. A test computes the hashes.
pub(super) const SERVICES: [(&str, &str, &str); 6] = [
    (
        "describe_parameters",
        "DescribeParameters",
        "RIHS01_845b484d71eb0673dae682f2e3ba3c4851a65a3dcfb97bddd82c5b57e91e4cff",
    ),
    (
        "get_parameter_types",
        "GetParameterTypes",
        "RIHS01_da199c878688b3e530bdfe3ca8f74cb9fa0c303101e980a9e8f260e25e1c80ca",
    ),
    (
        "get_parameters",
        "GetParameters",
        "RIHS01_bf9803d5c74cf989a5de3e0c2e99444599a627c7ff75f97b8c05b01003675cbc",
    ),
    (
        "list_parameters",
        "ListParameters",
        "RIHS01_3e6062bfbb27bfb8730d4cef2558221f51a11646d78e7bb30a1e83afac3aad9d",
    ),
    (
        "set_parameters",
        "SetParameters",
        "RIHS01_56eed9a67e169f9cb6c1f987bc88f868c14a8fc9f743a263bc734c154015d7e0",
    ),
    (
        "set_parameters_atomically",
        "SetParametersAtomically",
        "RIHS01_0e192ef259c07fc3c07a13191d27002222e65e00ccec653ca05e856f79285fcd",
    ),
];

/// The services of the parameters. Their owner polls [`ParameterServices::answer`].
pub(crate) struct ParameterServices {
    node: String,
    values: Arc<Values>,
    /// In the order of [`SERVICES`].
    services: [ZenohService; SERVICES.len()],
    events: ZenohWriter,
}

impl ParameterServices {
    /// Offers the services. The first values are those of the spec.
    pub(super) fn declare(zenoh: &Zenoh, values: &Arc<Values>) -> Result<Self, Fault> {
        let qos = QosProfile::publisher_default().history(History::KeepLast { depth: DEPTH });
        let offer = |(name, ty, hash): (&str, &str, &str)| {
            let name = name_of(&zenoh.node, &format!("~/{name}"))?;
            ZenohService::declare(zenoh, &Subject::of_service(&name, PACKAGE, ty, hash), &qos)
        };
        let [describe, types, get, list, set, at_once] = SERVICES.map(offer);
        let services = [describe?, types?, get?, list?, set?, at_once?];
        let events = Subject {
            name: "/parameter_events".into(),
            type_name: format!("{PACKAGE}::msg::dds_::ParameterEvent_"),
            hash: EVENT.into(),
        };
        let events = ZenohWriter::declare(zenoh, &events, &qos)?;
        values.keep_first();
        let (node, values) = (zenoh.node.fully_qualified_name(), Arc::clone(values));
        Ok(ParameterServices { node, values, services, events })
    }

    /// Answers the requests that have come since the last poll.
    ///
    /// # Errors
    /// Zenoh has failed.
    pub(crate) fn answer(&self) -> Result<(), Fault> {
        let [describe, types, get, list, set, at_once] = &self.services;
        let mut changed = Vec::new();
        describe.answer(|asked: DescribeParametersRequest| {
            let values = asked.names.iter().map(|name| self.described(name)).collect();
            DescribeParametersResponse { values }
        });
        types.answer(|asked: GetParameterTypesRequest| {
            let ty = |name: &String| ParameterValue::to_parameter_type_raw(&self.value(name));
            GetParameterTypesResponse { values: asked.names.iter().map(ty).collect() }
        });
        get.answer(|asked: GetParametersRequest| {
            let values = asked.names.iter().map(|name| self.value(name).into()).collect();
            GetParametersResponse { values }
        });
        list.answer(|asked: ListParametersRequest| {
            let names = self.values.now().1.into_keys().collect();
            ListParametersResponse { result: listed(names, &asked) }
        });
        set.answer(|asked: SetParametersRequest| {
            let each = asked.parameter.into_iter().map(|it| self.set(vec![it], &mut changed));
            SetParametersResponse { results: each.collect() }
        });
        at_once.answer(|asked: SetParametersRequest| {
            let result = self.set(asked.parameter, &mut changed);
            SetParametersAtomicallyResponse { result }
        });
        if changed.is_empty() {
            return Ok(());
        }
        self.events.publish(&raw::ParameterEvent {
            stamp: Time::now(),
            node: self.node.clone(),
            new_parameters: Vec::new(),
            changed_parameters: changed,
            deleted_parameters: Vec::new(),
        })
    }

    fn value(&self, name: &str) -> ParameterValue {
        self.values.now().1.remove(name).unwrap_or(ParameterValue::NotSet)
    }

    fn described(&self, name: &str) -> raw::ParameterDescriptor {
        match self.value(name) {
            ParameterValue::NotSet => ParameterDescriptor::unknown(name),
            value => ParameterDescriptor {
                description: String::new(),
                ..ParameterDescriptor::from_value(name, &value)
            },
        }
        .into()
    }

    /// Sets all of these parameters or none.
    fn set(
        &self,
        asked: Vec<raw::Parameter>,
        changed: &mut Vec<raw::Parameter>,
    ) -> raw::SetParametersResult {
        let asked = asked.into_iter().map(|it| (it.name, ParameterValue::from(it.value)));
        let asked: Vec<_> = asked.collect();
        let judge = |(name, value): &(String, ParameterValue)| {
            self.values.judge(name, value)?;
            self.values.judge_type(name, value)
        };
        let result = asked.iter().try_for_each(judge);
        if result.is_ok() {
            for (name, value) in asked {
                self.values.keep(&name, &value);
                changed.push(raw::Parameter { name, value: value.into() });
            }
        }
        result.into()
    }
}

/// The names that begin with one of the prefixes asked for and have at most `depth` further parts.
/// No prefix: all names. Depth 0: any number of parts.
fn listed(names: Vec<String>, asked: &ListParametersRequest) -> ListParametersResult {
    let ListParametersRequest { prefixes, depth } = asked;
    let is_in_depth = |rest: &str| *depth == 0 || (rest.matches('.').count() as u64) < *depth;
    let begins = |name: &str, prefix: &String| {
        let rest = name.strip_prefix(prefix.as_str());
        rest.is_some_and(|it| it.is_empty() || it.strip_prefix('.').is_some_and(is_in_depth))
    };
    let is_asked = |name: &String| match &prefixes[..] {
        [] => is_in_depth(name),
        prefixes => prefixes.iter().any(|prefix| begins(name, prefix)),
    };
    let names: Vec<_> = names.into_iter().filter(is_asked).collect();
    let prefixes = names.iter().filter_map(|it| it.rsplit_once('.')).map(|it| it.0.to_owned());
    let prefixes = prefixes.collect::<BTreeSet<_>>().into_iter().collect();
    ListParametersResult { names, prefixes }
}

#[cfg(test)]
mod tests;
